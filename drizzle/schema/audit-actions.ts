/**
 * Every action of the audit log, with the sentence that operators read about it. Each name in braces is replaced, and a clause in
 * brackets is left out if a name in it has no value in an entry.
 */
export const AUDIT_SENTENCES = {
  'organisation.founded': '{organisation} was founded[ by {actor}]',
  'organisation.named': '{organisation} was renamed[ by {actor}]',
  'organisation.dissolved': '{organisation} was dissolved[ by {actor}]',
  'identity.joined': 'A sign-in was added[ by {actor}][: {identity}]',
  'identity.separated': 'A sign-in was removed[ by {actor}][: {identity}]',
  'contractor.created': '{contractor} was added[ by {actor}]',
  'contractor.updated': '{contractor}’s record was changed[ by {actor}][: {fields}]',
  'contractor.activated': '{contractor} is registered with the token',
  'contractor.invited': '{contractor} was invited[ {mailed}][ by {actor}][: “{note}”]',
  'contractor.mail-failed': 'The invite of {contractor} could not be mailed[: {reason}]',
  'contractor.linked': 'The invite of {contractor} was accepted[ by {actor}]',
  'contractor.removed': '{contractor} was removed[ by {actor}]',
  'batch.created': '{batch} was created[ by {actor}]',
  'batch.removed': '{batch} was deleted[ by {actor}]',
  'batch.instructed': 'Payouts were added to {batch}[ by {actor}][: {payouts}]',
  'batch.locked': '{batch} was locked[ by {actor}]',
  'batch.sealed': 'Amounts of {batch} were sealed to the relay[ by {actor}]',
  'batch.run': 'A run of {batch} was started[ by {actor}]',
  'batch.approved': 'A run of {batch} was signed[ by {signer}][, passed on by {actor}]',
  'batch.approval-void': 'Earlier signatures on a run of {batch} no longer count[: {changes}]',
  'batch.run-completed': 'The run of {batch} was completed',
  'batch.run-failed': 'The run of {batch} failed',
  'batch.started': '{batch} was started[ by {actor}]',
  'batch.completed': '{batch} was completed',
  'batch.failed': '{batch} failed',
  'payout.created': '{payout} was added[ by {actor}]',
  'payout.readied': '{payout} is ready to be paid[, locked by {actor}]',
  'payout.claimed': '{transfer} was recorded for {payout}',
  'payout.paid': '{payout} was paid',
  'payout.failed': '{payout} failed',
  'payout.canceled': '{payout} was canceled[ by {actor}]',
  'payout.found-paid': 'A payment of {payout}, which was canceled or already paid, was found on the ledger',
  'transfer.sponsored': '{transfer} was accepted[ from {actor}]',
  'transfer.settled': '{transfer} was settled[: {status}]',
  'transfer.refused': 'A transfer[ to {contractor}][ from {actor}] was refused by the sponsor[: {reason}]',
  'transfer.looked-up': '{transfer} was looked up on the ledger[ for {actor}]',
  'operator.admitted': '{actor} signed in to the dashboard',
  'operator.rejected': 'A wrong password was given at the dashboard',
  'channel.retired': '{channel} was retired[ by {actor}][: “{note}”]',
  'channel.paused': '{channel} was paused[ by {actor}][: “{note}”]',
  'channel.resumed': '{channel} was resumed[ by {actor}][: “{note}”]',
  'payments.stopped': 'Payments were stopped[ because of an unknown transaction of {channel}]',
  'payments.resumed': 'Payments were resumed[ by {actor}][: “{note}”]',
  'webhook.created': 'A webhook was added[ by {actor}][: {host}]',
  'webhook.removed': 'A webhook was removed[ by {actor}][: {host}]',
  'webhook.rotated': 'The secret of a webhook was rotated[ by {actor}][: {host}]',
  'webhook.disabled': 'A webhook was disabled[: {host}]',
  'webhook.redelivered': 'An event was sent to a webhook again[ by {actor}][: {host}]',
  'webhook.enabled': 'A webhook was enabled again[ by {actor}][: {host}]',
  'attention.acknowledged': 'A notice about {record} was acknowledged[ by {actor}][: “{note}”]',
  'audit.dropped': 'Entries[ from before {month}] were deleted from the audit log[ by {actor}]',
} as const satisfies Record<`${string}.${string}`, string>

export type AuditAction = keyof typeof AUDIT_SENTENCES
export const AUDIT_ACTIONS = Object.keys(AUDIT_SENTENCES) as [AuditAction, ...AuditAction[]]

type BeforeDot<Text> = Text extends `${infer Before}.${string}` ? Before : never

/** What an entry is about: the word before the dot of its action. Of an operator, only sign-ins are recorded. */
export type SubjectKind = Exclude<BeforeDot<AuditAction>, 'operator'> | 'sign-in'

type NamesIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never

/** The names in braces. */
export type SentenceName = NamesIn<(typeof AUDIT_SENTENCES)[AuditAction]>
