"""
What we hang into pt-online-schema-change through its `--plugin`, so that it asks for exclusive metadata locks as we do (F24).

It makes the copy LIKE the table, so that each column says the same words about its character set; and it adds the copy's
foreign keys and the tool's three triggers in one hold of the table, taken in a gap. Everything it needs comes in its
environment, none of it secret. Its lines tell :mod:`steps.handover_tool` when to watch its session.
"""

from __future__ import annotations

from dataclasses import dataclass

LOOKING, HELD = "rollout: looking for a gap", "rollout: holds the table"
NO_GAP = "rollout: no gap"

HOOKS = r"""
package pt_online_schema_change_plugin;
use strict;
use warnings;
use Time::HiRes ();

sub new {
   my ($class, %given) = @_;
   my $self = bless { cxn => $given{cxn} }, $class;
   my ($mine) = $self->_dbh->selectrow_array('SELECT GET_LOCK(?, 0)', undef, $ENV{ROLLOUT_LOCK});
   die "another copy of this table is under way\n" unless $mine;
   return $self;
}

sub _dbh { return $_[0]->{cxn}->dbh }

sub _all {
   my ($self, $statements) = @_;
   $self->_dbh->do($_) for grep { /\S/ } split /\n/, $statements;
   return;
}

sub _say { local $| = 1; print "$_[0]\n"; return }

# Returns once $holders finds nobody; with $statement once that has been carried out, too.
sub _in_gap {
   my ($self, $holders, $statement) = @_;
   my $until = Time::HiRes::time() + $ENV{ROLLOUT_GAP_WAIT_S};
   my $tries = 0;
   while (1) {
      my ($held) = $self->_dbh->selectrow_array($holders);
      if (!$held) {
         return unless $statement;
         return if eval { local $self->_dbh->{PrintError} = 0; $self->_dbh->do($statement); 1 };
         die $@ unless $@ =~ /interrupted|wait timeout/i;
         $tries++;
      }
      die "__NO_GAP__\n" if Time::HiRes::time() >= $until;
      Time::HiRes::sleep($tries ? 0.02 + rand(0.1 * ($tries < 10 ? $tries : 10)) : 0.005 + rand(0.025));
   }
}

sub before_create_new_table { $_[0]->_in_gap($ENV{ROLLOUT_RELATIVES}); return }

sub after_create_new_table {
   my ($self) = @_;
   $self->_in_gap($ENV{ROLLOUT_RELATIVES});
   $self->_all($ENV{ROLLOUT_COPY});
   return;
}

sub before_create_triggers {
   my ($self) = @_;
   _say('__LOOKING__');
   # Should the network fall silent, the server ends the hold by itself.
   $self->_dbh->do('SET SESSION wait_timeout = 5');
   $self->_in_gap($ENV{ROLLOUT_HOLDERS}, $ENV{ROLLOUT_HOLD});
   _say('__HELD__');
   $self->_all($ENV{ROLLOUT_KEYS});
   return;
}

sub after_create_triggers {
   my ($self) = @_;
   $self->_dbh->do('UNLOCK TABLES');
   $self->_dbh->do('SET SESSION wait_timeout = 10000');
   return;
}

1;
""".replace("__LOOKING__", LOOKING).replace("__HELD__", HELD).replace("__NO_GAP__", NO_GAP)


@dataclass(frozen=True)
class Orders:
    """What the hooks are told: statements by the line; *relatives* and *holders* count who holds the table's relatives, and it or them."""

    lock: str
    relatives: str
    holders: str
    gap_wait_s: float
    copy: tuple[str, ...]
    hold: str
    keys: tuple[str, ...]

    def environment(self) -> dict[str, str]:
        return {"ROLLOUT_LOCK": self.lock, "ROLLOUT_RELATIVES": self.relatives, "ROLLOUT_HOLDERS": self.holders,
                "ROLLOUT_GAP_WAIT_S": f"{self.gap_wait_s:g}", "ROLLOUT_COPY": "\n".join(self.copy), "ROLLOUT_HOLD": self.hold,
                "ROLLOUT_KEYS": "\n".join(self.keys)}
