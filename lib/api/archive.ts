import { StrKey } from '@stellar/stellar-sdk'
import type { z } from 'zod'
import { readCheckpoint } from '#lib/archive/checkpoint.ts'
import {
  type Archive,
  type ArchivedPage,
  openArchive,
  readAccountEvents,
  readRegistryEvents,
  readTokenEvents,
  readTransactionEvents,
} from '#lib/archive/history.ts'
import {
  accountQuery,
  archiveHealthShape,
  checkpointQuery,
  checkpointShape,
  MAX_PAGE,
  pageShape,
  type rangeQuery,
  registryQuery,
  tokenQuery,
} from '#lib/archive/schema.ts'
import { recentWindow } from '#lib/archive/source.ts'
import { findFinalEnds } from '#lib/archive/streams.ts'
import type { Database } from '#lib/db/connection.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { Service } from '#lib/server/services.ts'
import { EXAMPLE } from './examples.ts'
import { ApiResponse, inGroup, operation } from './operation.ts'

/** A final range may be cached forever once it ends this many ledgers below the ingested end. */
const SETTLED_LEDGERS = 100

const NO_STORE = { 'Cache-Control': 'no-store' }
const FOR_EVER = { 'Cache-Control': 'public, max-age=31536000, immutable' }

const notArchived = (what: string) => new Refusal('archive-not-found', `${what} not found`)

/**
 * The archive of the requested token and generation.
 * @throws Refusal 404 `archive-not-found`; 503 `unavailable` before the first page is ingested
 */
async function requireArchive(
  { archive: context }: Service,
  { contract, account }: { contract: string; account?: string },
  expected: string | undefined,
): Promise<{ db: Database; archive: Archive }> {
  if (context?.token !== contract) throw notArchived('contract')
  const isAccount = account === undefined || StrKey.isValidEd25519PublicKey(account) || StrKey.isValidContract(account)
  if (!isAccount) throw notArchived('account')
  const db = readOnly(await context.database())
  const archive = await openArchive(db, contract)
  if (!archive) throw new Refusal('unavailable', 'nothing is archived yet', { retryAfter: 30 })
  if (expected !== undefined && expected !== archive.generation) throw notArchived('generation')
  return { db, archive }
}

type RangeQuery = z.output<typeof rangeQuery>

function rangeOf({ firstLedger, ingestedThrough }: Archive, query: RangeQuery) {
  const { cursor: after, limit = MAX_PAGE } = query
  // A range that ends below the first ledger, or begins above the ingested end, must not be reported as complete.
  const { from_ledger = Math.min(firstLedger, query.to_ledger ?? firstLedger) } = query
  if (query.to_ledger !== undefined && query.to_ledger < from_ledger) {
    throw new Refusal('to-ledger-invalid', 'to_ledger is before from_ledger')
  }
  const { to_ledger = Math.max(ingestedThrough, from_ledger) } = query
  return { fromLedger: from_ledger, toLedger: to_ledger, after, limit }
}

/** A page that can no longer change may be cached forever by clients that name the generation and the ledgers. */
function answerEvents(archive: Archive, query: RangeQuery, { isFinal, ...page }: ArchivedPage) {
  const { generation: named, from_ledger, to_ledger } = query
  const isFixed = named !== undefined && from_ledger !== undefined && to_ledger !== undefined
  const isSettled = page.complete && isFinal && (to_ledger ?? 0) <= archive.ingestedThrough - SETTLED_LEDGERS
  return new ApiResponse(page, { headers: isFixed && isSettled ? FOR_EVER : NO_STORE })
}

const EVENT_EXAMPLE = {
  id: '0005172498236424192-0000000001',
  contract_id: EXAMPLE.contract,
  ledger_seq: 1_204_331,
  ledger_close_time: EXAMPLE.paid,
  tx_hash: EXAMPLE.hash,
  tx_application_order: 3,
  event_index: 1,
  type: 'merge',
  topics_xdr: ['AAAADwAAAAVtZXJnZQAAAA==', 'AAAAEgAAAAAAAAAAF1E4sM0kkAkXKCCQ3QeQRE+rxN1rI2AaaI4g1NVuq08='],
  data_xdr: 'AAAAEQAAAAEAAAAA',
}
const PAGE_EXAMPLE = { events: [EVENT_EXAMPLE], cursor: null, complete: true }
const GENERATION_EXAMPLE = EXAMPLE.hash
const RANGE_EXAMPLE = {
  from_ledger: '1200000',
  to_ledger: '1204331',
  cursor: '0005172498236424192-0000000001',
  limit: '1000',
  generation: GENERATION_EXAMPLE,
}

const CONTRACT = { contract: { description: 'the confidential token (C…)', example: EXAMPLE.contract } }
const ACCOUNT = { ...CONTRACT, account: { description: 'the account (G… or C…)', example: EXAMPLE.payee } }

/** Everyone may read the archive, from any origin. */
const PUBLIC = { caller: 'anybody', readers: 'everybody', extension: true } as const

export const ARCHIVE_OPERATIONS = inGroup('Archive', [
  operation({
    ...PUBLIC,
    id: 'getArchiveHealth',
    route: 'GET /archive/v1/health',
    summary: 'Get the state of ingestion',
    response: {
      description: 'The range of the archive, and its generation',
      schema: archiveHealthShape,
      example: {
        latest_ledger: 1_204_331,
        ingested_through: 1_204_330,
        final_through: 1_204_210,
        first_ledger: 1_083_371,
        lag_seconds: 5,
        generation: GENERATION_EXAMPLE,
      },
    },
    refusals: ['archive-not-found', 'rate-limited'],
    handle: async ({ service: { archive: context }, now }) => {
      if (!context) throw notArchived('archive')
      const db = readOnly(await context.database())
      const [{ latestLedger }, archive] = await Promise.all([
        recentWindow(context.network),
        openArchive(db, context.token),
      ])
      const last = archive?.ranges.at(-1)
      const final = archive && (await findFinalEnds(db, [archive.token.id])).get(archive.token.id)
      const age = last && Math.max(0, now.getTime() / 1000 - last.throughClosedAt)
      const body = {
        latest_ledger: latestLedger,
        ingested_through: last?.throughLedger ?? null,
        final_through: final ?? null,
        first_ledger: archive?.firstLedger ?? null,
        lag_seconds: last && age !== undefined ? (last.throughLedger >= latestLedger ? 0 : Math.round(age)) : null,
        generation: archive?.generation ?? null,
      }
      return new ApiResponse(body, { headers: NO_STORE })
    },
  }),
  operation({
    ...PUBLIC,
    id: 'getCheckpoint',
    route: 'GET /archive/v1/tokens/{contract}/accounts/{account}/checkpoint',
    summary: 'Find where the replay of an account’s balance begins',
    parameters: ACCOUNT,
    query: { schema: checkpointQuery, example: { at_ledger: '1204331', generation: GENERATION_EXAMPLE } },
    response: {
      description: 'The checkpoint and its anchor; `event` is null for an account without one',
      schema: checkpointShape,
      example: { event: { ...EVENT_EXAMPLE, type: 'transfer' }, anchor: EVENT_EXAMPLE, complete: true },
    },
    refusals: ['archive-not-found', 'rate-limited'],
    handle: async ({ service, params, query }) => {
      const { db, archive } = await requireArchive(service, params, query.generation)
      const checkpoint = await readCheckpoint(db, archive, params.account, query.at_ledger ?? archive.ingestedThrough)
      return new ApiResponse(checkpoint, { headers: NO_STORE })
    },
  }),
  operation({
    ...PUBLIC,
    id: 'listAccountEvents',
    route: 'GET /archive/v1/tokens/{contract}/accounts/{account}/events',
    summary: 'List the events of an account, in ledger order',
    description:
      'Events whose topics contain the account. With `types`, a page may have fewer events than `limit`, or none.',
    parameters: ACCOUNT,
    query: { schema: accountQuery, example: { ...RANGE_EXAMPLE, types: 'transfer,merge' } },
    response: { description: 'A page of events', schema: pageShape, example: PAGE_EXAMPLE },
    refusals: ['archive-not-found', 'rate-limited'],
    handle: async ({ service, params, query }) => {
      const { db, archive } = await requireArchive(service, params, query.generation)
      const range = { ...rangeOf(archive, query), types: query.types }
      return answerEvents(archive, query, await readAccountEvents(db, archive, params.account, range))
    },
  }),
  operation({
    ...PUBLIC,
    id: 'listTokenEvents',
    route: 'GET /archive/v1/tokens/{contract}/events',
    summary: 'List all events of the token, or those of one transaction',
    parameters: CONTRACT,
    query: { schema: tokenQuery, example: { ...RANGE_EXAMPLE, tx_hash: EXAMPLE.hash } },
    response: { description: 'A page of events', schema: pageShape, example: PAGE_EXAMPLE },
    refusals: ['archive-not-found', 'rate-limited'],
    handle: async ({ service, params, query }) => {
      const { db, archive } = await requireArchive(service, params, query.generation)
      if (query.tx_hash === undefined) {
        return answerEvents(archive, query, await readTokenEvents(db, archive, rangeOf(archive, query)))
      }
      // The transaction may be archived later, so its ledger range does not make the response final.
      const { isFinal: _, ...page } = await readTransactionEvents(db, archive, query.tx_hash)
      return new ApiResponse(page, { headers: NO_STORE })
    },
  }),
  operation({
    ...PUBLIC,
    id: 'listRegistryEvents',
    route: 'GET /archive/v1/tokens/{contract}/registry',
    summary: 'List the events of the verifier and auditor registries that the token has named',
    description: 'Rotated keys are in these events only: a registry does not store them.',
    parameters: CONTRACT,
    query: { schema: registryQuery, example: { ...RANGE_EXAMPLE, registry: EXAMPLE.contract } },
    response: { description: 'A page of events', schema: pageShape, example: PAGE_EXAMPLE },
    refusals: ['archive-not-found', 'rate-limited'],
    handle: async ({ service, params, query }) => {
      const { db, archive } = await requireArchive(service, params, query.generation)
      const page = await readRegistryEvents(db, archive, rangeOf(archive, query), query.registry)
      return answerEvents(archive, query, page)
    },
  }),
])
