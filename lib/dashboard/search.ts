import { and, eq, gte, inArray, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core'
import { auditLog } from '#drizzle/schema/audit.ts'
import { batches, contractors, IDENTITY_KINDS, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { beginsWith, idsWith, inIndexOrder, type Searchable } from '#lib/db/search.ts'
import { isId } from '#lib/directory/ids.ts'
import { isRequestId } from '#lib/http/request-id.ts'
import { foldEmailPart } from '#lib/text/email.ts'
import { selectAudit } from './audit.ts'
import { type DescribedEntry, describeEntries } from './audit-words.ts'
import { anyOf } from './filters.ts'

/** A record that a search found; `at` is when it was created. */
export type Hit = Awaited<ReturnType<typeof addOrganisations>>[number]

/** What a search found: records, and the audit entries of a request or of a refused transaction, newest first. */
export type SearchResult = Awaited<ReturnType<typeof searchRecords>>

/** How many records each kind of match lists. */
export const MAX_HITS = 20

const LONGEST = 200

/**
 * Finds records by a text that is recognised by its form: a hash, an address, an id or its first eight digits, the id of a
 * request, or else a part of a name or an email. Each form has an index.
 */
export async function searchRecords(db: Database, text: string) {
  const given = text.trim().slice(0, LONGEST)
  // PostgreSQL stores neither NUL nor unpaired surrogates.
  const q = given.isWellFormed() ? given.normalize('NFC') : ''
  if (q === '' || q.includes('\0')) return NOTHING
  const found: Match[][] = []
  for (const search of searchesFor(db, q)) found.push(await search())
  const written = isRequestId(q) ? await entriesWhere(db, writtenFor(q)) : []
  // A kind of match has more records than are listed.
  const isCut = [...found, written].some((rows) => rows.length > MAX_HITS)
  const entries = await describeEntries(db, written.slice(0, MAX_HITS))
  const hits = await addOrganisations(db, withoutRepeats(found.flatMap((rows) => rows.slice(0, MAX_HITS))))
  return { hits, entries, hasMore: isCut }
}

const NOTHING = { hits: [] as Hit[], entries: [] as DescribedEntry[], hasMore: false }

const isHash = (text: string) => /^[0-9a-f]{64}$/i.test(text)

/** The queries that a text's form allows. */
function searchesFor(db: Database, q: string): Search[] {
  const hash = isHash(q) ? q.toLowerCase() : undefined
  const address = /^[GC][A-Z2-7]{55}$/i.test(q) ? q.toUpperCase() : undefined
  const ids = rangeOfIds(q.toLowerCase())
  return [
    ...(hash ? byHash(db, hash) : []),
    ...(address ? byAddress(db, address) : []),
    ...(ids ? byId(db, ids) : []),
    ...(isRequestId(q) ? [find(db, 'transfer', 'request id', inArray(transfers.id, recordedBy(db, q)))] : []),
    // A user of the identity provider is an account, too.
    ...(address ? [] : [byUser(db, q)]),
    ...(hash || address ? [] : byText(db, q)),
  ]
}

/** A query of the search. They run one at a time, because a transaction has one connection. */
type Search = ReturnType<typeof find>

interface SearchTarget {
  table: PgTable & Record<'id' | 'createdAt', AnyPgColumn>
  /** its name, if it has one; the account of a transfer */
  name: AnyPgColumn | SQL
  organisation: AnyPgColumn | SQL
}

const none = sql`null`

const TYPES = {
  transfer: { table: transfers, name: transfers.account, organisation: transfers.organisation },
  payout: { table: payouts, name: none, organisation: payouts.organisation },
  batch: { table: batches, name: batches.name, organisation: batches.organisation },
  job: { table: relayJobs, name: none, organisation: none },
  contractor: { table: contractors, name: contractors.name, organisation: contractors.organisation },
  organisation: { table: organisations, name: organisations.name, organisation: none },
} as const satisfies Record<string, SearchTarget>
type Type = keyof typeof TYPES

/** The property that equals the text or contains it. */
type Property = 'id' | 'hash' | 'address' | 'account' | 'email' | 'name' | 'request id'

/** A hit with the id of its organisation. */
type Match = Awaited<ReturnType<Search>>[number]

/** The records of a kind that match a condition, newest first unless `order` says otherwise, and one more than are listed. */
const find = (db: Database, type: Type, by: Property, condition: SQL | undefined, order?: SQL) => async () => {
  const { table, name, organisation }: SearchTarget = TYPES[type]
  const rows = await db
    .select({
      id: sql<string>`${table.id}`,
      name: sql<string | null>`${name}`,
      organisation: sql<string | null>`${organisation}`,
      at: sql<Date>`${table.createdAt}`.mapWith(transfers.createdAt),
    })
    .from(table)
    .where(condition)
    .orderBy(order ?? sql`${table.createdAt} desc`)
    .limit(MAX_HITS + 1)
  return rows.map((row) => ({ type, by, ...row }))
}

function byHash(db: Database, hash: string): Search[] {
  const { id, payout, lineJob } = transfers
  const transfer = db
    .select({ id: envelopes.transfer })
    .from(envelopes)
    .where(or(eq(envelopes.innerHash, hash), eq(envelopes.outerHash, hash)))
  const ofTransfer = (column: AnyPgColumn) => db.select({ column }).from(transfers).where(inArray(id, transfer))
  return [
    find(db, 'transfer', 'hash', inArray(id, transfer)),
    find(db, 'payout', 'hash', inArray(payouts.id, ofTransfer(payout))),
    find(db, 'job', 'hash', inArray(relayJobs.id, ofTransfer(lineJob))),
  ]
}

/** It may have millions of transfers, so it is searched through the filter of their list. */
function byAddress(db: Database, address: string): Search[] {
  return [
    byUser(db, address),
    find(db, 'contractor', 'address', and(eq(contractors.address, address), isNull(contractors.deletedAt))),
  ]
}

function byUser(db: Database, sub: string): Search {
  const isUser = and(inArray(identities.kind, [...IDENTITY_KINDS]), eq(identities.sub, sub))
  const of = db.select({ id: identities.organisation }).from(identities).where(isUser)
  return find(db, 'organisation', 'account', inArray(organisations.id, of))
}

/** The first and the last id that begin with a text, if it is an id or at least its first part. */
function rangeOfIds(text: string): [first: string, last: string] | undefined {
  if (isId(text)) return [text, text]
  if (!/^[0-9a-f]{8}-?$/.test(text)) return undefined
  const start = text.slice(0, 8)
  return [`${start}-0000-0000-0000-000000000000`, `${start}-ffff-ffff-ffff-ffffffffffff`]
}

function byId(db: Database, [first, last]: [string, string]): Search[] {
  return (Object.keys(TYPES) as Type[]).map((type) => {
    const { id } = TYPES[type].table
    return find(db, type, 'id', and(gte(id, first), lte(id, last)))
  })
}

/** The records whose name or email, or the email of whose user, contains a text. */
function byText(db: Database, q: string): Search[] {
  const isPresent = isNull(contractors.deletedAt)
  const names = (['organisation', 'contractor', 'batch'] as const).map((type) => {
    const { table, name } = TYPES[type]
    const condition = type === 'contractor' ? isPresent : undefined
    return containing(db, type, {
      by: 'name',
      part: q,
      text: { table, id: table.id, folded: sql`lower(${name})`, condition },
    })
  })
  const email = { by: 'email', part: foldEmailPart(q) } as const
  const own = { table: contractors, id: contractors.id, folded: contractors.emailFolded, condition: isPresent }
  const users = { table: identities, id: identities.organisation, folded: identities.email, condition: undefined }
  return [
    ...names,
    containing(db, 'contractor', { ...email, text: own }),
    containing(db, 'organisation', { ...email, text: users }),
  ]
}

function containing(
  db: Database,
  type: Type,
  { by, part, text }: { by: Property; part: string; text: Searchable },
): Search {
  const { table } = TYPES[type]
  const isFound = anyOf(table.id, idsWith(part, text, MAX_HITS + 1))
  const order = sql`${beginsWith(text.folded, part)} desc, ${inIndexOrder(text.folded)}`
  return find(db, type, by, isFound, text.table === table ? order : undefined)
}

/**
 * The transfers that a request recorded an envelope for, which its last entries in the audit log name. A caller may repeat
 * one id for ever, and a transfer may have three envelopes.
 */
const recordedBy = (db: Database, request: string) =>
  db
    .select({ id: sql`(${auditLog.detail} ->> 'transfer')::uuid` })
    .from(auditLog)
    .where(and(eq(auditLog.requestId, request), eq(auditLog.action, 'transfer.sponsored')))
    .orderBy(sql`${auditLog.sequence} desc`)
    .limit(3 * (MAX_HITS + 1))

/** The entries that a request caused, and those of a transaction. */
const writtenFor = (q: string): SQL | undefined =>
  or(eq(auditLog.requestId, q), isHash(q) ? eq(auditLog.subjectId, q.toLowerCase()) : undefined)

async function entriesWhere(db: Database, condition: SQL | undefined) {
  return await selectAudit(db, condition)
    .orderBy(sql`${auditLog.sequence} desc`)
    .limit(MAX_HITS + 1)
}

/** An id may match in several ways; the first one counts. */
function withoutRepeats(hits: readonly Match[]): Match[] {
  return [...Map.groupBy(hits, ({ type, id }) => `${type} ${id}`).values()].flatMap(([first]) => first ?? [])
}

async function addOrganisations(db: Database, hits: readonly Match[]) {
  const ids = [...new Set(hits.flatMap(({ organisation }) => organisation ?? []))]
  const { id, name } = organisations
  const rows = ids.length === 0 ? [] : await db.select({ id, name }).from(organisations).where(inArray(id, ids))
  const found = new Map(rows.map((row) => [row.id, row]))
  return hits.map((hit) => ({ ...hit, organisation: found.get(hit.organisation ?? '') ?? null }))
}
