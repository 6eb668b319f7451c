import { Account, Keypair, Operation } from '@stellar/stellar-sdk'
import { ConfigurationError } from '#lib/config/environment.ts'
import { readBalance } from '#lib/stellar/asset.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { scAddress, scAmount } from '#lib/wallet/spending.ts'
import { simulateCall } from '#lib/wallet/transaction.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { readXlm } from './accounts.ts'
import type { DeployedToken } from './token.ts'

/** The source of the faucet's money: `issuer` mints it, `holder` and `native` (XLM) give of their own balance. */
type FaucetKind = 'issuer' | 'holder' | 'native'

/** The key of the faucet, or in `none` the reason why there is no faucet. */
export type FaucetPlan = { kind: FaucetKind; keypair: Keypair } | { none: string }

/**
 * Finds the account that can deposit the asset behind a token: its issuer, who mints, or an account that holds some. Of
 * XLM that is any account that friendbot has filled, so that a key can be made for it.
 * @throws ConfigurationError for a key that cannot; LedgerError `unavailable`
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
      none: `the token is over ${name}. Only its issuer can mint that, and no key (FAUCET_SEED) of the issuer, or of an account that holds some, was given`,
    }
  }
  const keypair = Keypair.fromSecret(seed)
  if (keypair.publicKey() === asset.getIssuer()) return { kind: 'issuer', keypair }
  const held = await readBalance(network.server, underlying, keypair.publicKey())
  if (held > 0n) return { kind: 'holder', keypair }
  const problem = `is the key of ${keypair.publicKey()}, which neither issues ${name} nor holds any: it cannot deposit`
  throw new ConfigurationError('FAUCET_SEED', problem)
}

/** The faucet's balance in base units; undefined for one that mints. */
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
 * Has the ledger simulate what a deposit does with the asset, a transfer from the faucet to the token, signed by the
 * faucet. This finds frozen accounts and contracts, too.
 * @throws ConfigurationError when it would fail; LedgerError `unavailable`
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
  // Simulation looks at no sequence number.
  await simulateCall(deployment, new Account(faucet, '0'), operation, {}).catch((cause: unknown) => {
    if (!(cause instanceof WalletError)) throw ledgerUnreachable(cause)
    throw new ConfigurationError('FAUCET_SEED', `its account cannot deposit: ${cause.message}`)
  })
}
