/** The query parameters of a list without filters. */
export const PAGE_EXAMPLE = { limit: '100', cursor: 'MTc3MjQ0MjAwMDAwMC0xMg' } as const

/** The values of all examples: a small company, its contractor, and a payroll of one payout. */
export const EXAMPLE = {
  employer: 'GBTL47RTFR5EKMZSXWOQU735WBK7LRPPDIDK3JTNTCZZ7NUBBRDTVSK2',
  payee: 'GAFVCOWZWSJEAFOKBEBO2B4QITJ2YXN6YIYG6BUURQINVDVW4OPS3OL6',
  contract: 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC',
  contractorId: '5f0c7e0a-3c55-4a6e-9d0e-2f6a1f7b8c11',
  batchId: '0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20',
  payoutId: 'c2a9d2ab-5b0e-4d0f-b5a1-1f0b7a6e3c44',
  jobId: '7a1e2f0c-0a43-4ac1-8f0e-6d5b1c9e2f33',
  orgId: '9e3b1d77-26a4-4e0f-9a61-0b2c4d8f5a66',
  webhookId: 'b6f1a0c9-4d1e-4f7b-9a55-3c0d2e1f7a88',
  deliveryId: 'e4a7c1d2-6b3f-4c8e-8d09-5f2a1b0c9e77',
  webhookSecret: `whsec_${'c2VjcmV0'.repeat(5)}c2U=`,
  session: 'eyJhbGciOiJIUzI1NiIsInR5cCI6InNlc3Npb24rand0In0.eyJraW5kIjoibGVkZ2VyIn0.c2lnbmF0dXJl',
  invite: 'Xwx-CjxVSm6dDi9qH3uMEQAAAAGenp6enp6enp6enp6enp6enp6enp6enp6enp6enp6eng',
  hash: '3a7f0e6dbb0b7b0c8f9bfd0e2f1f5c0d9b1a4e7c6d5f8e9a0b1c2d3e4f5a6b7c',
  seal: 'eyJhbGciOiJFQ0RILUVTIiwiZW5jIjoiQTI1NkdDTSIsImtpZCI6IuKApiJ9..bm9uY2Ugb2YgMTJi.c2VhbGVkIGFtb3VudC4u.MTYgYnl0ZXMgb2YgYSB0YWc',
  runSignature: `${'c2lnbmF0dXJl'.repeat(7)}c2ln`.slice(0, 86).concat('=='),
  pvk: '1f'.repeat(64),
  created: '2026-03-02T09:00:00.000Z',
  started: '2026-03-02T09:05:00.000Z',
  paid: '2026-03-02T09:05:06.000Z',
} as const

export const CONTRACTOR_EXAMPLE = {
  id: EXAMPLE.contractorId,
  name: 'Ada Lovelace',
  status: 'ready',
  createdAt: EXAMPLE.created,
  email: 'ada@example.com',
  address: EXAMPLE.payee,
  pvk: EXAMPLE.pvk,
  lastPaidAt: EXAMPLE.paid,
  externalId: 'hr/1815',
} as const

export const BATCH_EXAMPLE = {
  id: EXAMPLE.batchId,
  name: 'March 2026',
  status: 'draft',
  payoutCount: 1,
  settledCount: 0,
  failedCount: 0,
  createdAt: EXAMPLE.created,
  externalId: 'payroll/2026-03',
} as const

export const PAYOUT_EXAMPLE = {
  id: EXAMPLE.payoutId,
  batchId: EXAMPLE.batchId,
  contractorId: EXAMPLE.contractorId,
  status: 'paid',
  createdAt: EXAMPLE.created,
  address: EXAMPLE.payee,
  txHash: EXAMPLE.hash,
  encryptedAmount: 'b3BhcXVlIHRvIHRoZSBzZXJ2aWNl',
  paidAt: EXAMPLE.paid,
  externalId: 'payroll/2026-03/1815',
} as const

export const ME_EXAMPLE = {
  sub: EXAMPLE.employer,
  kind: 'ledger',
  identities: [
    { kind: 'ledger', sub: EXAMPLE.employer },
    { kind: 'idp', sub: 'auth0|64f1', email: 'ada@example.com' },
  ],
  roles: ['employer'],
  needsOnboarding: false,
  employer: { orgId: EXAMPLE.orgId, orgName: 'Analytical Engines' },
  quota: {
    transfers: { used: 12, limit: 200 },
    stroops: { used: '1843200', limit: '500000000' },
    resetsAt: '2026-03-03T00:00:00.000Z',
  },
} as const

export const WEBHOOK_EXAMPLE = {
  id: EXAMPLE.webhookId,
  url: 'https://erp.example/payroll-events',
  types: ['payout.paid', 'payout.failed'],
  createdAt: EXAMPLE.created,
}

export const DELIVERY_EXAMPLE = {
  id: EXAMPLE.deliveryId,
  eventId: '4711-9f86d081884c7d65',
  type: 'payout.paid',
  status: 'delivered',
  attempts: 1,
  createdAt: EXAMPLE.paid,
  attemptedAt: EXAMPLE.paid,
  endedAt: EXAMPLE.paid,
  responseStatus: 204,
  response: '',
} as const
