import { Keypair, SorobanDataBuilder, type Transaction, xdr } from '@stellar/stellar-sdk'

/** By how many bytes an account entry grows with its first transaction: extensions 1 to 3 (CAP-21). */
const EXTENSION_BYTES = 52
/** The fee for reading and writing the extensions, rounded up, in stroops. */
const EXTENSION_FEE = 100n

/**
 * Raises the resources of an account's very first transaction if its call also touches that account, as a deposit by an
 * issuer or of the native asset does. Using the sequence number makes the entry larger than in the simulation, and the call
 * would fail with resource_limit_exceeded.
 */
export function allowForFirstUse(
  data: xdr.SorobanTransactionData,
  transaction: Transaction,
): xdr.SorobanTransactionData {
  const account = xdr.LedgerKey.account(
    new xdr.LedgerKeyAccount({ accountId: Keypair.fromPublicKey(transaction.source).xdrAccountId() }),
  ).toXdr('base64')
  const { footprint, instructions, diskReadBytes, writeBytes } = data.resources
  const within = (keys: readonly xdr.LedgerKey[]) => keys.some((key) => key.toXdr('base64') === account)
  const written = within(footprint.readWrite)
  if (!isFirst(transaction) || !(written || within(footprint.readOnly))) return data
  return new SorobanDataBuilder(data)
    .setResources(instructions, diskReadBytes + EXTENSION_BYTES, writeBytes + (written ? EXTENSION_BYTES : 0))
    .setResourceFee(data.resourceFee + EXTENSION_FEE)
    .build()
}

/** An account's first sequence number has its ledger in the upper half and 0 in the lower. */
function isFirst(transaction: Transaction): boolean {
  return (BigInt(transaction.sequence) & 0xffff_ffffn) === 1n
}
