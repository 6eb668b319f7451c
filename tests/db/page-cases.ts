import { AUDIT } from '#lib/dashboard/audit.ts'
import { BATCHES } from '#lib/dashboard/batches.ts'
import { CONTRACTORS } from '#lib/dashboard/contractors.ts'
import type { FilterChecks } from '#lib/dashboard/filters.ts'
import { JOBS } from '#lib/dashboard/jobs.ts'
import { ORGANISATIONS } from '#lib/dashboard/organisations.ts'
import { REFUSALS, TRANSFERS } from '#lib/dashboard/transfers.ts'

/** The lists, each with its filters. */
export const LISTS: [path: string, checks: FilterChecks][] = [
  ['/audit', AUDIT.filters],
  ['/batches', BATCHES.filters],
  ['/contractors', CONTRACTORS.filters],
  ['/jobs', JOBS.filters],
  ['/organisations', ORGANISATIONS.filters],
  ['/transfers', TRANSFERS.filters],
  ['/transfers?view=refused', REFUSALS.filters],
]

/** Every page that shows records, and the searches for each kind of text. */
export const PAGES = [
  '/overview',
  '/overview?range=30d',
  ...LISTS.map(([path]) => path),
  '/transfers?view=succeeded',
  '/transfers?view=open',
  '/transfers?organisation={largeOrganisation}&view=failed',
  '/transfers?organisation={largeOrganisation}&sort=fee',
  '/transfers?batch={largeBatch}',
  '/transfers/{transfer}',
  '/transfers/{delegated}',
  '/payouts/{payout}',
  '/batches/{batch}',
  ...['', '?status=paid', '?status=ready', '?status=failed'].map((query) => `/batches/{largeBatch}${query}`),
  '/contractors/{contractor}',
  '/organisations?sort=24h',
  '/organisations?sort=30d',
  '/organisations/{organisation}',
  '/organisations/{largeOrganisation}',
  '/jobs/{job}',
  '/jobs/{run}',
  '/ledger/{hash}',
  ...[
    '{hash}',
    '{address}',
    '{organisation}',
    '{prefix}',
    '{employer}',
    'Employer 7',
    'c7@example.com',
    'Contractor',
    'ontractor',
    '@example',
    'a-request',
  ].map((q) => `/search?q=${q}`),
  ...['relay', 'registration check', 'registration sweep'].map((sub) => `/audit?actor=service:${sub}`),
  '/audit?actor=operator:Ada',
  ...['batch.removed', 'payout.paid', 'transfer.sponsored'].map((action) => `/audit?action=${action}`),
  '/invite/{invite}',
]

/** The pages that read no record. */
export const WITHOUT_RECORDS = [
  '',
  'docs',
  'docs/[group]',
  'docs/errors',
  'docs/guides/[slug]',
  'invite/late',
  'mail/[token]',
  'sign-in',
]

/** The files of the lists. The payouts are those of a batch, of an organisation, or of a contractor. */
export const FILES = [
  ...['audit', 'batches', 'contractors', 'jobs', 'organisations', 'payouts', 'refusals', 'transfers'].map(
    (list) => `/${list}.csv`,
  ),
  ...['batch={largeBatch}', 'organisation={largeOrganisation}', 'contractor={contractor}'].map(
    (scope) => `/payouts.csv?${scope}`,
  ),
  ...['audit', 'batches', 'contractors', 'jobs', 'transfers'].map(
    (list) => `/${list}.csv?organisation={largeOrganisation}`,
  ),
]
