import { AUDIT_ACTIONS, AUDIT_SENTENCES, type AuditAction, type SentenceName } from '#drizzle/schema/audit-actions.ts'
import { IDENTITY_KINDS } from '#drizzle/schema/directory.ts'
import { type Actor, subjectKindOf } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import { ACKNOWLEDGEABLE } from './acknowledgements.ts'
import type { AuditLine } from './audit.ts'
import { findNames, keyOf, type Names } from './audit-names.ts'
import { explainRefusal } from './explanation.ts'
import { fillIn, type Mention, namesIn, plainText, type Reference, type Sentence } from './sentence.ts'
import { TRANSFER_PHRASES } from './transfer-rows.ts'

/** An entry with its sentence. */
export interface DescribedEntry extends AuditLine {
  sentence: Sentence
}

/** Writes the sentences of some entries, with the present names of the records and users in them. */
export async function describeEntries(db: Database, lines: readonly AuditLine[]): Promise<DescribedEntry[]> {
  const references = lines.flatMap((line) => [...referencesOf(line).values()])
  const names = await findNames(db, references, lines.flatMap(actorsOf))
  return lines.map((line) => ({ ...line, sentence: sentenceOf(line, names) }))
}

/** The name of an actor, as in the sentences. */
export async function nameActor(db: Database, actor: Actor): Promise<string> {
  if (actor.kind === 'service') return `the service (${actor.sub})`
  return mentionOf(actor, await findNames(db, [], [actor]), null).text
}

const RECORDS = ['organisation', 'contractor', 'batch', 'payout', 'transfer', 'job', 'channel'] as const

type RecordName = (typeof RECORDS)[number] | 'record'

/** The words for a record that no longer exists, and for an operator in general. */
const NOUNS: Partial<Record<string, string>> = { organisation: 'an organisation', actor: 'an operator' }

const nounFor = (name: string): string => NOUNS[name] ?? `a ${name}`

/** Every action with its sentence without names: 'A batch was started'. */
export const ACTIONS_IN_WORDS = AUDIT_ACTIONS.map(
  (action) => [action, plainText(fillIn(AUDIT_SENTENCES[action], () => undefined, nounFor))] as const,
)

/** The records that the names in an entry's sentence stand for: its subject, and those whose ids are in its detail. */
function referencesOf({ action, subjectId, detail }: AuditLine) {
  const kind = subjectKindOf(action)
  const acknowledged: Partial<Record<string, { record: string }>> = ACKNOWLEDGEABLE
  const references = new Map<string, { type: (typeof RECORDS)[number]; id: string }>()
  for (const name of namesIn(sentenceFor(action))) {
    const type = RECORDS.find(
      (one) => one === (name === 'record' ? acknowledged[String(detail.condition)]?.record : name),
    )
    // The subject of a transfer's entry may be a hash.
    const id = String(detail[name] ?? (name === 'record' || name === kind ? subjectId : ''))
    if (type && (isId(id) || (type === 'channel' && id !== ''))) references.set(name, { type, id })
  }
  return references
}

/** An entry that a newer version has written, with an action that this one does not know, is shown by the action's name. */
const sentenceFor = (action: AuditAction): string =>
  Object.hasOwn(AUDIT_SENTENCES, action) ? AUDIT_SENTENCES[action] : action

function sentenceOf(line: AuditLine, names: Names): Sentence {
  const references = referencesOf(line)
  const phraseFor = (name: string) => {
    const reference = references.get(name)
    if (reference) return PHRASES[reference.type](reference.id, line, names)
    return DETAILS[name as keyof typeof DETAILS]?.(line, names)
  }
  return fillIn(sentenceFor(line.action), phraseFor, nounFor)
}

const mention = (type: Reference['type'], id: string, text: string): Mention => ({ text, of: { type, id } })

/** How a sentence names each type of record; undefined if the record no longer exists. */
const PHRASES: Record<(typeof RECORDS)[number], (id: string, line: AuditLine, names: Names) => Sentence | undefined> = {
  organisation: (id, { organisationName: name }) => (name === null ? undefined : [mention('organisation', id, name)]),
  contractor: (id, _, { contractors }) => {
    const contractor = contractors.get(id)
    return contractor && [mention('contractor', id, contractor.name)]
  },
  batch: (id, _, { batches }) => {
    const batch = batches.get(id)
    return batch && batchPhrase(id, batch.name)
  },
  payout: (id, _, { payouts }) => {
    const payout = payouts.get(id)
    if (!payout) return undefined
    const payee = mention('contractor', payout.contractorId, payout.contractor)
    return [
      'the ',
      mention('payout', id, 'payout'),
      ' to ',
      payee,
      ' in ',
      ...batchPhrase(payout.batchId, payout.batch),
    ]
  },
  transfer: (id, { organisation }, names) => {
    const transfer = names.transfers.get(id)
    if (!transfer) return undefined
    const { kind, contractor, contractorName, recipient } = transfer
    const [noun = '', ...rest] = TRANSFER_PHRASES[kind].split(' ')
    const payee = contractor
      ? mention('contractor', contractor, contractorName ?? '')
      : mentionOf({ kind: 'ledger', sub: recipient }, names, organisation)
    return ['the ', mention('transfer', id, noun), ` ${rest.join(' ')} `, payee]
  },
  job: (id) => ['a ', mention('job', id, 'relay job')],
  channel: (id) => ['channel ', mention('channel', id, shorten(id))],
}

const batchPhrase = (id: string, name: string): Sentence => ['batch ', mention('batch', id, `“${name}”`)]

/** An address or an id of a user with its middle left out. */
const shorten = (text: string): string => (text.length > 20 ? `${text.slice(0, 4)}…${text.slice(-4)}` : text)

type Value = (line: AuditLine, names: Names) => Sentence | undefined

const detailNamed =
  (name: string): Value =>
  ({ detail: { [name]: value } }) =>
    value === undefined ? undefined : [Array.isArray(value) ? value.join(', ') : String(value)]

const DETAILS: Record<Exclude<SentenceName, RecordName>, Value> = {
  actor: (line, names) => {
    const [actor] = actorsOf(line)
    if (!actor || actor.kind === 'service') return undefined
    const user = mentionOf(actor, names, line.organisation)
    // An organisation is not founded by itself.
    return user.of.type === 'organisation' && user.of.id === line.subjectId ? undefined : [user]
  },
  identity: (line, names) => {
    const [, identity] = actorsOf(line)
    return identity && [accountMention(identity, names)]
  },
  fields: detailNamed('fields'),
  changes: detailNamed('changes'),
  host: detailNamed('host'),
  signer: detailNamed('signer'),
  status: detailNamed('status'),
  note: detailNamed('note'),
  payouts: detailNamed('payouts'),
  reason: ({ detail: { reason } }) => (reason === undefined ? undefined : [explainRefusal(String(reason))]),
  mailed: ({ detail: { mailed } }) => (mailed === true ? ['by email'] : undefined),
  month: ({ subjectId }) => [subjectId],
}

/** The actor of an entry, and the identity that it is about. */
function actorsOf({ action, actorKind, actorSub, subjectId }: AuditLine): Actor[] {
  const actor = { kind: actorKind, sub: actorSub }
  if (subjectKindOf(action) !== 'identity') return [actor]
  const kind = IDENTITY_KINDS.find((one) => subjectId.startsWith(`${one}:`))
  return kind ? [actor, { kind, sub: subjectId.slice(kind.length + 1) }] : [actor]
}

/**
 * A user by the name of its organisation, or of the contractor that it is linked to: those of the entry's organisation first.
 * An operator by the name that it gave.
 */
function mentionOf(actor: Actor, names: Names, organisation: string | null): Mention {
  const { kind, sub } = actor
  if (kind === 'operator') return mention('operator', sub, sub)
  if (names.channels.has(sub)) return mention('channel', sub, `channel ${shorten(sub)}`)
  const { organisation: own = null, contractors = [] } = names.users.get(keyOf(actor)) ?? {}
  const linked = contractors.find((one) => one.organisation === organisation) ?? (own ? undefined : contractors[0])
  if (linked && own?.id !== organisation) return mention('contractor', linked.id, linked.name)
  if (own) return mention('organisation', own.id, own.name)
  return accountMention(actor, names)
}

function accountMention(actor: Actor, names: Names): Mention {
  return mention('account', actor.sub, names.users.get(keyOf(actor))?.email ?? shorten(actor.sub))
}
