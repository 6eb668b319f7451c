import { Account, Keypair, Operation } from '@stellar/stellar-sdk'
import { ConfigurationError } from '#lib/config/environment.ts'
import { readBalance } from '#lib/stellar/asset.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { scAddress, scAmount } from '#lib/wallet/invocation.ts'
import { simulateCall } from '#lib/wallet/transaction.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { readXlm } from './accounts.ts'
import type { DeployedToken } from './token.ts'

/** `issuer` mints; `holder` and `native` (XLM) spend their own balance. */
type FaucetKind = 'issuer' | 'holder' | 'native'

/** The faucet's key, or in `none` the reason why there is no faucet. */
export type FaucetPlan = { kind: FaucetKind; keypair: Keypair } | { none: string }

/**
 * Chooses an account that can deposit the asset behind a token: its issuer, who mints, or a holder. For XLM any account
 * that friendbot funds will do, so a key can be generated.
 * @throws ConfigurationError for a key that cannot deposit; LedgerError `unavailable`
 */
export async function planFaucet(
  network: Network,
  { asset: underlying }: DeployedToken,
  seed: string | undefined,
): Promise<FaucetPlan> {
  const { asset } = underlying
  if (asset.isNative()) return { kind: 'native', keypair: seed ? Keypair.fromSecret(seed) : Keypair.random() }
  const name = `${asset.getCode()}:${asset.getIssuer()}`
  if (!seed) {
    return {
      none: `the token’s asset is ${name}, and FAUCET_SEED is not the key of its issuer or of a holder`,
    }
  }
  const keypair = Keypair.fromSecret(seed)
  if (keypair.publicKey() === asset.getIssuer()) return { kind: 'issuer', keypair }
  const balance = await readBalance(network.server, underlying, keypair.publicKey())
  if (balance > 0n) return { kind: 'holder', keypair }
  const problem = `is the key of ${keypair.publicKey()}, which cannot deposit: it neither issues ${name} nor holds any`
  throw new ConfigurationError('FAUCET_SEED', problem)
}

/** The faucet's balance in base units; undefined if it mints. */
export async function readFaucetFunds(
  network: Network,
  { asset }: DeployedToken,
  { kind, keypair }: { kind: FaucetKind; keypair: Keypair },
): Promise<bigint | undefined> {
  if (kind === 'issuer') return undefined
  if (kind === 'native') return await readXlm({ network }, keypair.publicKey())
  return await readBalance(network.server, asset, keypair.publicKey())
}

/**
 * Simulates the asset transfer of a deposit, from the faucet to the token. This also detects frozen accounts.
 * @throws ConfigurationError if it would fail; LedgerError `unavailable`
 */
export async function tryFaucet(
  network: Network,
  { token, asset }: DeployedToken,
  { keypair }: { keypair: Keypair },
  amount: bigint,
): Promise<void> {
  const faucet = keypair.publicKey()
  const operation = Operation.invokeContractFunction({
    contract: asset.contract,
    function: 'transfer',
    args: [scAddress(faucet), scAddress(token), scAmount(amount)],
  })
  const deployment = { rpc: network.server, passphrase: network.passphrase, token }
  // Simulation ignores the sequence number.
  await simulateCall(deployment, new Account(faucet, '0'), operation, {}).catch((cause: unknown) => {
    if (!(cause instanceof WalletError)) throw ledgerUnreachable(cause)
    throw new ConfigurationError('FAUCET_SEED', `its account cannot deposit: ${cause.message}`)
  })
}
