import { and, eq, gte, inArray, isNull, lte, or, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core'
import { auditLog } from '#drizzle/schema/audit.ts'
import { batches, contractors, IDENTITY_KINDS, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { relayJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { beginsWith, idsWith, inIndexOrder, type Searchable } from '#lib/db/search.ts'
import { isId } from '#lib/directory/ids.ts'
import { isRequestId } from '#lib/http/request-id.ts'
import { foldEmailPart } from '#lib/text/email.ts'
import { selectAudit } from './audit.ts'
import { type DescribedEntry, describeEntries } from './audit-words.ts'
import { anyOf } from './filters.ts'
import { envelopeRows, transferRows } from './transfer-rows.ts'

/** A record that a search found. */
export interface Hit {
  type: 'transfer' | 'payout' | 'batch' | 'job' | 'contractor' | 'organisation'
  id: string
  /** its name, if it has one; the account of a transfer */
  name: string | null
  /** the property that equals the text or contains it */
  by: 'id' | 'hash' | 'address' | 'account' | 'email' | 'name' | 'request id'
  organisation: { id: string; name: string } | null
  /** when it was created */
  at: Date
}

export interface SearchResult {
  hits: Hit[]
  /** the audit entries of a request or of a refused transaction, newest first */
  entries: DescribedEntry[]
  /** whether a kind of match has more records than are listed */
  hasMore: boolean
}

/** How many records each kind of match lists. */
export const MAX_HITS = 20

const LONGEST = 200

/**
 * Finds records by a text that is recognised by its form: a hash, an address, an id or its first eight digits, the id of a
 * request, or else a part of a name or an email. Each form has an index.
 */
export async function searchRecords(db: Database, text: string): Promise<SearchResult> {
  const given = text.trim().slice(0, LONGEST)
  // PostgreSQL stores neither NUL nor unpaired surrogates.
  const q = given.isWellFormed() ? given.normalize('NFC') : ''
  if (q === '' || q.includes('\0')) return { hits: [], entries: [], hasMore: false }
  const found: Found[][] = []
  for (const search of searchesFor(db, q)) found.push(await search())
  const written = isRequestId(q) ? await entriesWhere(db, writtenFor(q)) : []
  const isCut = [...found, written].some((rows) => rows.length > MAX_HITS)
  const entries = await describeEntries(db, written.slice(0, MAX_HITS))
  const hits = await addOrganisations(db, withoutRepeats(found.flatMap((rows) => rows.slice(0, MAX_HITS))))
  return { hits, entries, hasMore: isCut }
}

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
    ...(isRequestId(q) ? [find(db, TRANSFERS, 'request id', inArray(transferRows.id, recordedBy(db, q)))] : []),
    // A user of the identity provider is an account, too.
    ...(address ? [] : [byUser(db, q)]),
    ...(hash || address ? [] : byText(db, q)),
  ]
}

/** A query of the search. They run one at a time, because a transaction has one connection. */
type Search = () => Promise<Found[]>

/** A hit with the id of its organisation. */
type Found = Omit<Hit, 'organisation'> & { organisation: string | null }

interface Searched {
  type: Hit['type']
  table: PgTable & Record<'id' | 'createdAt', AnyPgColumn>
  name: AnyPgColumn | SQL
  organisation: AnyPgColumn | SQL
}

const none = sql`null`

const { account, organisation: ofTransfer } = transferRows
const TRANSFERS: Searched = { type: 'transfer', table: transferRows, name: account, organisation: ofTransfer }
const PAYOUTS: Searched = { type: 'payout', table: payouts, name: none, organisation: payouts.organisation }
const BATCHES: Searched = { type: 'batch', table: batches, name: batches.name, organisation: batches.organisation }
const JOBS: Searched = { type: 'job', table: relayJobs, name: none, organisation: none }
const { name: contractorName, organisation: ofContractor } = contractors
const CONTRACTORS: Searched = {
  type: 'contractor',
  table: contractors,
  name: contractorName,
  organisation: ofContractor,
}
const ORGANISATIONS: Searched = {
  type: 'organisation',
  table: organisations,
  name: organisations.name,
  organisation: none,
}

/** The records of a kind that match a condition, newest first unless `order` says otherwise, and one more than are listed. */
const find =
  (db: Database, searched: Searched, by: Hit['by'], condition: SQL | undefined, order?: SQL): Search =>
  async () => {
    const { type, table, name, organisation } = searched
    const rows = await db
      .select({
        id: sql<string>`${table.id}`,
        name: sql<string | null>`${name}`,
        organisation: sql<string | null>`${organisation}`,
        at: sql<Date>`${table.createdAt}`.mapWith(transferRows.createdAt),
      })
      .from(table)
      .where(condition)
      .orderBy(order ?? sql`${table.createdAt} desc`)
      .limit(MAX_HITS + 1)
    return rows.map((row): Found => ({ type, by, ...row }))
  }

function byHash(db: Database, hash: string): Search[] {
  const transfer = db
    .select({ id: envelopeRows.transfer })
    .from(envelopeRows)
    .where(or(eq(envelopeRows.innerHash, hash), eq(envelopeRows.outerHash, hash)))
  const jobs = db.select({ job: transferRows.lineJob }).from(transferRows).where(inArray(transferRows.id, transfer))
  return [
    find(db, TRANSFERS, 'hash', inArray(transferRows.id, transfer)),
    find(
      db,
      PAYOUTS,
      'hash',
      inArray(
        payouts.id,
        db.select({ id: transferRows.payout }).from(transferRows).where(inArray(transferRows.id, transfer)),
      ),
    ),
    find(db, JOBS, 'hash', inArray(relayJobs.id, jobs)),
  ]
}

/** It may have millions of transfers, so it is searched through the filter of their list. */
function byAddress(db: Database, address: string): Search[] {
  return [
    byUser(db, address),
    find(db, CONTRACTORS, 'address', and(eq(contractors.address, address), isNull(contractors.deletedAt))),
  ]
}

function byUser(db: Database, sub: string): Search {
  const isUser = and(inArray(identities.kind, [...IDENTITY_KINDS]), eq(identities.sub, sub))
  const of = db.select({ id: identities.organisation }).from(identities).where(isUser)
  return find(db, ORGANISATIONS, 'account', inArray(organisations.id, of))
}

/** The first and the last id that begin with a text, if it is an id or at least its first part. */
function rangeOfIds(text: string): [first: string, last: string] | undefined {
  if (isId(text)) return [text, text]
  if (!/^[0-9a-f]{8}-?$/.test(text)) return undefined
  const start = text.slice(0, 8)
  return [`${start}-0000-0000-0000-000000000000`, `${start}-ffff-ffff-ffff-ffffffffffff`]
}

function byId(db: Database, [first, last]: [string, string]): Search[] {
  return [TRANSFERS, PAYOUTS, BATCHES, JOBS, CONTRACTORS, ORGANISATIONS].map((searched) =>
    find(db, searched, 'id', and(gte(searched.table.id, first), lte(searched.table.id, last))),
  )
}

/** The records whose name or email, or the email of whose user, contains a text. */
function byText(db: Database, q: string): Search[] {
  const isPresent = { contractor: isNull(contractors.deletedAt) } as Partial<Record<Hit['type'], SQL>>
  const names = [ORGANISATIONS, CONTRACTORS, BATCHES].map((searched) => {
    const { type, table, name } = searched
    const text = { table, id: table.id, folded: sql`lower(${name})`, condition: isPresent[type] }
    return containing(db, searched, { by: 'name', part: q, text })
  })
  const email = { by: 'email', part: foldEmailPart(q) } as const
  const own = { table: contractors, id: contractors.id, folded: contractors.emailFolded }
  const users = { table: identities, id: identities.organisation, folded: identities.email, condition: undefined }
  return [
    ...names,
    containing(db, CONTRACTORS, { ...email, text: { ...own, condition: isPresent.contractor } }),
    containing(db, ORGANISATIONS, { ...email, text: users }),
  ]
}

function containing(
  db: Database,
  searched: Searched,
  { by, part, text }: { by: Hit['by']; part: string; text: Searchable },
): Search {
  const isFound = anyOf(searched.table.id, idsWith(part, text, MAX_HITS + 1))
  const isOwn = text.table === searched.table
  const order = sql`${beginsWith(text.folded, part)} desc, ${inIndexOrder(text.folded)}`
  return find(db, searched, by, isFound, isOwn ? order : undefined)
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
function withoutRepeats(hits: readonly Found[]): Found[] {
  return [...Map.groupBy(hits, ({ type, id }) => `${type} ${id}`).values()].flatMap(([first]) => first ?? [])
}

async function addOrganisations(db: Database, hits: readonly Found[]): Promise<Hit[]> {
  const ids = [...new Set(hits.flatMap(({ organisation }) => organisation ?? []))]
  const { id, name } = organisations
  const rows = ids.length === 0 ? [] : await db.select({ id, name }).from(organisations).where(inArray(id, ids))
  const found = new Map(rows.map((row) => [row.id, row]))
  return hits.map((hit) => ({ ...hit, organisation: found.get(hit.organisation ?? '') ?? null }))
}
