import { z } from 'zod'
import { findLedgerAccount, fund, requireFaucet } from '#lib/faucet/faucet.ts'
import { requireVault } from '#lib/faucet/vault.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const vaultShape = z.object({
  vault: z.string().meta({ description: 'the address (G… or C…) whose balance backs the confidential balances' }),
  held: z.string().meta({ description: 'its balance of the asset, with seven decimals' }),
})

const faucetShape = z.object({
  hash: z.string().meta({ description: 'hash of the deposit on the ledger, 64 hex digits' }),
})

export const FUNDING_OPERATIONS = inGroup('Funding', [
  operation({
    id: 'getVault',
    route: 'GET /funding/vault',
    caller: 'session',
    summary: 'Get the vault that backs the confidential balances',
    requires: ({ vault }) => requireVault(vault),
    response: {
      description: 'The vault and its balance',
      schema: vaultShape,
      example: { vault: EXAMPLE.contract, held: '125000.0000000' },
    },
    refusals: ['vault-not-configured', 'not-wired'],
    handle: ({ ready }) => ready.read(),
  }),
  operation({
    id: 'fund',
    waitsForLedger: true,
    route: 'POST /funding/faucet',
    caller: 'session',
    summary: 'Deposit test USDC into your confidential balance',
    description: [
      'Funds the account of the session, a wallet joined to it, or the address of the contractor record linked to the',
      'caller. The deposit arrives in the receiving balance; `merge` makes it spendable.',
    ].join(' '),
    requires: ({ faucet }) => requireFaucet(faucet),
    response: { description: 'The deposit was applied', schema: faucetShape, example: { hash: EXAMPLE.hash } },
    refusals: [
      'provider-mismatch',
      'account-missing',
      'account-unregistered',
      'faucet-cooldown',
      'deposit-failed',
      'deposit-open',
      'faucet-busy',
      'faucet-not-configured',
      'not-wired',
    ],
    handle: async ({ service, session, ready, now }) => {
      const db = await service.database()
      return await fund(db, ready, await findLedgerAccount(db, session, now))
    },
  }),
])
