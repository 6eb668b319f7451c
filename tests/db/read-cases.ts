/** The requests to an operation: by an employer of average size, by the largest, and without a session. */
export interface ReadCases {
  average?: string[]
  largest?: string[]
  machine?: string[]
}

const OF_ACCOUNT = 'archive/v1/tokens/{token}/accounts/{largeEmployer}'

/** The requests to each operation that reads, by its id. */
export const READS: Record<string, ReadCases> = {
  getMe: { average: ['/me'], largest: ['/me'] },
  listContractors: {
    average: ['/contractors'],
    largest: [
      '?limit=100',
      '?limit=100&q=Payee',
      '?limit=100&q=stranger',
      '?limit=100&status=ready',
      '?limit=100&status=invited',
      '?limit=100&externalId=unknown',
    ].map((query) => `/contractors${query}`),
  },
  getContractor: { average: ['/contractors/{contractor}'] },
  listBatches: {
    average: ['/batches', '/batches?limit=2', '/batches?status=completed', '/batches?q=Payroll'],
    largest: ['/batches', '/batches?status=draft', '/batches?externalId=unknown'],
  },
  getBatch: { average: ['/batches/{batch}'], largest: ['/batches/{largeBatch}?limit=100'] },
  getBatchProgress: { average: ['/batches/{batch}/status'], largest: ['/batches/{largeBatch}/status'] },
  // It reads the ledger, too: tests/relay/approvals.pg.test.ts.
  getApproval: {},
  listPayouts: {
    average: [
      '',
      '?batchId={batch}',
      '?contractorId={contractor}',
      '?status=failed',
      '?status=paid',
      '?from=2026-01-01&to=2026-02-01',
    ].map((query) => `/payouts${query}`),
    largest: [
      '?limit=100',
      '?batchId={largeBatch}',
      '?status=ready',
      '?status=paid',
      '?status=failed',
      '?externalId=unknown',
      '?from=2026-01-01&to=2026-02-01',
    ].map((query) => `/payouts${query}`),
  },
  listWebhooks: { average: ['/webhooks'] },
  listWebhookDeliveries: { average: ['/webhooks/{webhook}/deliveries'] },
  listEvents: {
    average: ['/events', '/events?type=payout.paid&limit=500', '/events?from=2026-01-01'],
    largest: ['/events', '/events?type=payout.failed', '/events?limit=500'],
  },
  getJob: { average: ['/batch/{job}'] },
  getRelay: { largest: ['/relay'] },
  getArchiveHealth: { machine: ['/archive/v1/health'] },
  getCheckpoint: { machine: [`/${OF_ACCOUNT}/checkpoint`, `/${OF_ACCOUNT}/checkpoint?at_ledger=9000`] },
  listAccountEvents: {
    machine: ['', '?from_ledger=9000&to_ledger=9500', '?types=set_spender'].map(
      (query) => `/${OF_ACCOUNT}/events${query}`,
    ),
  },
  listTokenEvents: {
    machine: ['', `?tx_hash=${'0'.repeat(64)}`].map((query) => `/archive/v1/tokens/{token}/events${query}`),
  },
  listRegistryEvents: { machine: ['/archive/v1/tokens/{token}/registry'] },
  getReadiness: { machine: ['/ready'] },
  getMetrics: { machine: ['/metrics'] },
}

/** Operations that read no record. The chores have separate tests. */
export const WITHOUT_READS = ['getChallenge', 'getStandardChallenge', 'getVault', 'getHealth', 'getDocument', 'sweep']
