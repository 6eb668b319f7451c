import { type Keypair, xdr } from '@stellar/stellar-sdk'
import { type ConfidentialAccount, readConfidentialAccount, readParties } from './account.ts'
import { type Balance, merge } from './balance.ts'
import { checkAmount, commit, type Opening } from './commitment.ts'
import type { Deployment, TokenOnNetwork } from './deployment.ts'
import { encodePoint } from './grumpkin.ts'
import { invoke, invokeDeposit, scAddress } from './invocation.ts'
import { type AnyHolder, requireRepeatable } from './keys.ts'
import { markedSource, markKeyOf } from './payment-mark.ts'
import { addressOf, type Signer } from './signer.ts'
import {
  proveCall,
  proveDelegation,
  proveTransfer,
  proveWithdrawal,
  type Spending,
  type Start,
  startFrom,
} from './spending.ts'
import {
  type CallOptions,
  type CallSimulation,
  prepareCall,
  readSource,
  type SignedCall,
  signCall,
} from './transaction.ts'
import { WalletError } from './wallet-error.ts'

/** A signed call and the sender's opening after it. Store it before submitting, or the wallet must synchronise. */
export type SignedSpending = SignedCall & { next: Opening }

/**
 * Registers the holder's keys in the token under an auditor of the registry. They cannot be changed afterwards, so the signer
 * signs the key-derivation message again, and nothing is registered unless it yields the same keys. Fails before it proves if the
 * ledger would refuse it.
 * @throws WalletError `signer-not-deterministic`, `no-account`, `already-registered`; `would-fail` with contract error 3301 for
 *   an unknown auditor
 */
export async function buildRegister(
  deployment: Deployment,
  holder: AnyHolder,
  registration: { auditorId: number },
  options: CallOptions = {},
): Promise<SignedCall> {
  const { token } = deployment
  await requireRepeatable(holder, token)
  const account = holder.address
  await readSource(deployment, holder.signer, options)
  if (await readConfidentialAccount(deployment.rpc, token, account)) {
    const message = `${account} is registered with the token already: its keys cannot be changed`
    throw new WalletError('already-registered', message, { contractError: 3500 })
  }
  const { sk, vk, spendingKey, viewingKey } = holder.keys
  const payload = { y: spendingKey, pvk: viewingKey }
  const data = await proveCall(deployment, payload, {
    circuit: 'register',
    token,
    account,
    ...payload,
    witness: { sk, vk },
  })
  const args = [scAddress(account), xdr.ScVal.scvU32(registration.auditorId), data]
  return await call(deployment, holder.signer, invoke(deployment, 'register', args), options)
}

/**
 * Moves a public amount (base units) of the underlying asset from the signer, who need not be registered, into the
 * receiving balance of `to`, who must be (3501). From the asset's issuer it mints.
 */
export async function buildDeposit(
  deployment: TokenOnNetwork,
  signer: Keypair | Signer,
  deposit: { to: string; amount: bigint },
  options: CallOptions = {},
): Promise<SignedCall> {
  const terms = { from: addressOf(signer), to: deposit.to, amount: checkAmount(deposit.amount) }
  return await call(deployment, signer, await invokeDeposit(deployment, terms), options)
}

/**
 * Merges the receiving balance into the spendable one. With `balance`, `next` is the spendable opening afterwards, provided
 * that nothing is received before the call is applied.
 */
export async function buildMerge(
  deployment: TokenOnNetwork,
  signer: Keypair | Signer,
  balance?: Balance,
  options: CallOptions = {},
): Promise<SignedCall & { next?: Opening }> {
  const operation = invoke(deployment, 'merge', [scAddress(addressOf(signer))])
  const signed = await call(deployment, signer, operation, options)
  return balance ? { ...signed, next: merge(balance).spendable } : signed
}

/** A payment of a hidden amount (base units) to a registered account, from the balance that `opening` opens. */
interface Transfer {
  to: string
  amount: bigint
  opening: Opening
  /** what it pays, such as the id of a payout: with the sender's viewing key, the ledger shows it for ever */
  purpose?: string
}

/**
 * Proves and signs a transfer.
 * @throws WalletError `balance-changed` or `other-keys` if the opening or the keys do not match the ledger, `not-registered`,
 *   `balance-too-low`, `unspendable`, `would-fail`, or `malformed` for an amount out of range
 */
export async function buildTransfer(
  deployment: Deployment,
  holder: AnyHolder,
  transfer: Transfer,
  options: CallOptions = {},
): Promise<SignedSpending> {
  return await signSpending(deployment, holder, await proveTransferNow(deployment, holder, transfer), options)
}

/** Proves a transfer, to be signed by `signSpending`. Throws like `buildTransfer`. */
export async function proveTransferNow(
  deployment: Deployment,
  holder: AnyHolder,
  transfer: Transfer,
): Promise<Spending> {
  return await proveTo(deployment, holder, transfer, (account) => startFrom(account, holder, transfer.opening))
}

/**
 * Proves a transfer from the balance that an earlier call will leave. Pass it to `signSpending` once that call is applied.
 * Throws like `buildTransfer`, but does not compare the opening with the ledger.
 */
export async function proveTransferAhead(
  deployment: Deployment,
  holder: AnyHolder,
  transfer: Transfer,
): Promise<Spending> {
  const { opening } = transfer
  return await proveTo(deployment, holder, transfer, () => ({ spendable: encodePoint(commit(opening)), opening }))
}

/** @param startOf the start of the transfer, from the sender's account on the ledger */
async function proveTo(
  deployment: Deployment,
  holder: AnyHolder,
  transfer: Transfer,
  startOf: (sender: ConfidentialAccount) => Start,
): Promise<Spending> {
  const from = holder.address
  const party = await readParties(deployment, [from, transfer.to])
  const [sender, recipient] = [party(from), party(transfer.to)]
  const { purpose, ...terms } = transfer
  const random =
    purpose === undefined ? deployment.random : markedSource({ signer: markKeyOf(holder.keys.vk) }, purpose)
  return await proveTransfer({ ...deployment, ...(random && { random }) }, holder, startOf(sender.account), {
    ...terms,
    viewingKey: recipient.account.viewingKey,
    auditorRecipient: recipient.auditor,
    auditorSender: sender.auditor,
  })
}

/** Signs a proved payment. @throws WalletError `would-fail` with contract error 3506 if the balance has changed */
export async function signSpending(
  deployment: TokenOnNetwork,
  holder: AnyHolder,
  { name, args, next }: Spending,
  options: CallOptions = {},
): Promise<SignedSpending> {
  return { ...(await call(deployment, holder.signer, invoke(deployment, name, args), options)), next }
}

/**
 * `signSpending`, and its simulation, with which a payer of the fee need not simulate the call again. Throws like
 * `signSpending`.
 */
export async function signWithSimulation(
  deployment: TokenOnNetwork,
  holder: AnyHolder,
  { name, args, next }: Spending,
  options: CallOptions = {},
): Promise<SignedSpending & { simulation: CallSimulation }> {
  const source = await readSource(deployment, holder.signer, options)
  const prepared = await prepareCall(deployment, source, invoke(deployment, name, args), options)
  const { transaction, simulation } = prepared
  return { ...(await signCall(transaction, holder.signer)), next, simulation }
}

/**
 * Withdraws a public amount (base units) of the underlying asset to `to`, from the balance that `opening` opens. A G…
 * address needs a trustline unless the asset is native. Throws like `buildTransfer`.
 */
export async function buildWithdraw(
  deployment: Deployment,
  holder: AnyHolder,
  withdrawal: Transfer,
  options: CallOptions = {},
): Promise<SignedSpending> {
  const from = holder.address
  const { account, auditor } = (await readParties(deployment, [from]))(from)
  const start = startFrom(account, holder, withdrawal.opening)
  const proved = await proveWithdrawal(deployment, holder, start, { ...withdrawal, auditorSender: auditor })
  return await signSpending(deployment, holder, proved, options)
}

/**
 * Proves and signs a delegation: escrows an amount (base units) that `spender`, a registered account, may pay until a
 * ledger. An account can have only one delegation per spender, even after it expires.
 * @throws WalletError as `buildTransfer`, and `would-fail` with contract error 3503 if one exists already
 */
export async function buildDelegation(
  deployment: Deployment,
  holder: AnyHolder,
  delegation: { spender: string; amount: bigint; liveUntilLedger: number; opening: Opening },
  options: CallOptions = {},
): Promise<SignedSpending> {
  const owner = holder.address
  const { spender, opening } = delegation
  const party = await readParties(deployment, [owner, spender])
  const proved = await proveDelegation(deployment, holder, startFrom(party(owner).account, holder, opening), {
    ...delegation,
    spenderKey: party(spender).account.spendingKey,
    auditorSender: party(owner).auditor,
  })
  return await signSpending(deployment, holder, proved, options)
}

/** Ends a delegation and returns the rest of its escrow to the spendable balance. @throws WalletError `would-fail`, 3504 */
export async function buildRevocation(
  deployment: TokenOnNetwork,
  signer: Keypair | Signer,
  spender: string,
  options: CallOptions = {},
): Promise<SignedCall> {
  const args = [scAddress(addressOf(signer)), scAddress(spender)]
  return await call(deployment, signer, invoke(deployment, 'revoke_spender', args), options)
}

async function call(
  deployment: TokenOnNetwork,
  signer: Keypair | Signer,
  operation: xdr.Operation,
  options: CallOptions,
): Promise<SignedCall> {
  const source = await readSource(deployment, signer, options)
  const { transaction } = await prepareCall(deployment, source, operation, options)
  deployment.signal?.throwIfAborted()
  return await signCall(transaction, signer)
}
