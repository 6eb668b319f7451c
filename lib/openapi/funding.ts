import { z } from 'zod'
import type { FaucetResult } from '#lib/funding/faucet.ts'
import type { VaultState } from '#lib/funding/vault.ts'
import { EXAMPLE, OTHER_PROVIDER } from './examples.ts'
import type { Operation } from './operation.ts'

export const vaultShape = z.object({
  vault: z.string().meta({ description: 'the address (G… or C…) whose balance backs the confidential ones' }),
  held: z.string().meta({ description: 'what it holds of the asset, with seven decimals' }),
}) satisfies z.ZodType<VaultState>

export const faucetShape = z.object({
  hash: z.string().meta({ description: 'hash of the deposit on the ledger, 64 hex digits' }),
}) satisfies z.ZodType<FaucetResult>

const UNREACHABLE = 'the ledger cannot be reached'

export const FUNDING_OPERATIONS: Operation[] = [
  {
    id: 'getVault',
    method: 'get',
    path: '/funding/vault',
    group: 'Funding',
    caller: 'session',
    summary: 'What backs the confidential balances',
    answer: {
      description: 'The vault, and what it holds',
      schema: vaultShape,
      example: { vault: EXAMPLE.contract, held: '125000.0000000' },
    },
    refusals: {
      501: [
        'no bridge vault is configured',
        'the configured contract does not name its asset as a confidential token does',
        'the asset of the confidential token is not a Stellar asset',
      ],
      503: [UNREACHABLE, 'the ledger gave a balance that cannot be read'],
    },
  },
  {
    id: 'fund',
    method: 'post',
    path: '/funding/faucet',
    group: 'Funding',
    caller: 'session',
    summary: 'Get test USDC into your confidential balance',
    description: [
      'For the account of the session, or the address of the contractor record that the caller is linked to. The deposit',
      'arrives in the receiving balance: `merge` makes it spendable.',
    ].join(' '),
    answer: { description: 'The deposit stands on the ledger', schema: faucetShape, example: { hash: EXAMPLE.hash } },
    refusals: {
      403: [OTHER_PROVIDER],
      409: ['no ledger account', 'the account is not registered with the confidential token'],
      429: ['the faucet gives to an account once in {seconds} seconds'],
      500: ['the deposit failed'],
      501: ['no faucet is configured', 'the configured contract is no confidential token'],
      503: [
        UNREACHABLE,
        'the faucet is busy: nothing was granted',
        'it is not known yet whether the deposit has arrived',
      ],
    },
  },
]
