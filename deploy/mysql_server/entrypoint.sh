#!/usr/bin/dash
# What an image made by image.py runs: the part of the official image's entrypoint that testcontainers relies on.
set -eu
data=/var/lib/mysql
first=/tmp/first.sql
case "${1:-}" in mysqld) shift ;; esac

# Both are pasted into SQL below.
case "${MYSQL_ROOT_PASSWORD:?set the password root shall have}${MYSQL_DATABASE:-}" in
*["'\`\\"]*) echo "MYSQL_ROOT_PASSWORD and MYSQL_DATABASE must hold no quote and no backslash" >&2; exit 64 ;;
esac

set -- --no-defaults --user=mysql --datadir="$data" --secure-file-priv= --mysqlx=0 \
    --lc-messages-dir=/usr/share/mysql --character-sets-dir=/usr/share/mysql/charsets --socket="$data/mysqld.sock" "$@"
if [ ! -d "$data/mysql" ]; then
    {
        echo "ALTER USER 'root'@'localhost' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';"
        echo "CREATE USER 'root'@'%' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';"
        echo "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;"
        [ -z "${MYSQL_DATABASE:-}" ] || echo "CREATE DATABASE IF NOT EXISTS \`$MYSQL_DATABASE\`;"
    } >"$first"
    mysqld "$@" --skip-log-bin --init-file="$first" --initialize-insecure
fi
exec mysqld "$@"
