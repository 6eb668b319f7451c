import { writeCursor } from '#lib/db/keyset.ts'

export type Caller = 'employer' | 'large employer' | 'operator' | 'token'

const DAY_MS = 86_400_000
const day = (ago: number) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10)
/** Places near the end of a list by time and of one by sequence. A full page follows each. */
const [LAST, LAST_ENTRY] = [writeCursor([Date.now() - 87 * DAY_MS, 1]), writeCursor([0, 200])]

/** Every read of the API but those that ask the ledger, the pages, the first chunk of the files, and the chores. */
export const REQUESTS: readonly (readonly [caller: Caller, path: string, mostTimes?: number])[] = [
  ...[
    '/me',
    '/contractors?limit=100',
    '/contractors?limit=100&q=contractor',
    '/contractors/{contractor}',
    '/batches?limit=100',
    '/batches/{batch}',
    '/batches/{batch}/status',
    '/payouts?limit=100',
    '/payouts?contractorId={contractor}',
    '/payouts?status=failed',
    '/batch/{job}',
  ].map((path) => ['employer', `/api${path}`] as const),
  // An organisation of 50,000 contractors beside a smaller one: only the time counts.
  ...[
    '/contractors?limit=100',
    '/contractors?limit=100&q=payee',
    '/contractors?limit=100&q=stranger',
    '/contractors?limit=100&status=ready',
    '/batches/{largeBatch}?limit=100',
    '/payouts?limit=100&status=paid',
    '/payouts?limit=100&batchId={largeBatch}',
  ].map((path) => ['large employer', `/api${path}`, Number.POSITIVE_INFINITY] as const),
  ['token', '/api/metrics'],
  ...[
    'accounts/{largeEmployer}/checkpoint',
    'accounts/{largeEmployer}/events',
    'accounts/{largeEmployer}/events?types=set_spender',
    'events',
    'registry',
  ].map((path) => ['token', `/api/archive/v1/tokens/{token}/${path}`] as const),
  ...[
    '/overview',
    '/overview?range=30d',
    '/batches',
    '/batches?status=failed',
    '/batches/{batch}',
    '/transfers',
    '/transfers?view=failed',
    '/transfers?view=refused',
    '/transfers?organisation={organisation}',
    '/transfers?contractor={contractor}',
    '/transfers/{transfer}',
    '/payouts/{payout}',
    '/contractors',
    '/contractors?organisation={organisation}',
    '/contractors/{contractor}',
    '/organisations',
    '/organisations/{organisation}',
    '/jobs',
    '/jobs?organisation={organisation}',
    '/jobs/{job}',
    ...['/transfers', '/batches'].flatMap((list) => [`${list}?after=${LAST}`, `${list}?before=${LAST}`]),
    '/transfers?batch={batch}',
    '/transfers?reason=txFailed',
    '/audit',
    `/audit?after=${LAST_ENTRY}`,
    `/audit?before=${LAST_ENTRY}`,
    `/audit?from=${day(40)}&to=${day(40)}`,
    '/audit?actor=ledger:{employer}',
    '/audit?action=payout.failed',
    '/audit?action=payout.paid',
    '/audit?organisation={organisation}',
    '/pulse',
    ...['transfers', 'batches', 'payouts', 'contractors', 'organisations', 'jobs', 'audit', 'refusals'].map(
      (list) => `/${list}.csv`,
    ),
  ].map((path) => ['operator', path] as const),
  // The records of the largest employer, beside those of a smaller one: only the time counts.
  ...[
    '/batches/{largeBatch}',
    '/batches/{largeBatch}?status=ready',
    '/transfers?organisation={largeOrganisation}',
    '/transfers?batch={largeBatch}',
    '/transfers?account={largeEmployer}',
    '/transfers?account={channel}',
    '/contractors?organisation={largeOrganisation}',
    '/organisations/{largeOrganisation}',
    '/jobs/{run}',
    '/payouts.csv?organisation={largeOrganisation}',
  ].map((path) => ['operator', path, Number.POSITIVE_INFINITY] as const),
  ...['{hash}', '{address}', '{organisation}', 'Employer 7', 'c7@example.com'].map(
    (q) => ['operator', `/search?q=${q}`, 3] as const,
  ),
]
