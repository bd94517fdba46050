// V2: the same code on a model without status, sessionId and answerId, which cleanup removes.
export { default } from './v1.mjs'
