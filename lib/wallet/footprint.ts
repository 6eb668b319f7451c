import { Address, SorobanDataBuilder, xdr } from '@stellar/stellar-sdk'

/**
 * The resources of a simulated transfer, made to fit one to another recipient: wherever a key names the first recipient
 * (its confidential account, an entry on an allowlist), the new key names the other. What the sender's side needs stays.
 *
 * `reading` are keys that the other transfer reads besides, and `margin` stroops are added to the resource fee.
 * Instructions and bytes stay, for accounts are all of one size. What was archived is restored by the first transfer,
 * so that the others must not restore it.
 */
export function redirectResources(
  simulated: xdr.SorobanTransactionData,
  parties: Recipients,
  reading: readonly xdr.LedgerKey[],
  margin: bigint,
): xdr.SorobanTransactionData {
  const { readOnly, readWrite } = simulated.resources.footprint
  const writes = unique(redirectKeys(readWrite, parties))
  const reads = unique([...redirectKeys(readOnly, parties), ...reading], writes)
  return new SorobanDataBuilder(
    new xdr.SorobanTransactionData({
      ext: xdr.SorobanTransactionDataExt.v0(),
      resources: simulated.resources,
      resourceFee: simulated.resourceFee + margin,
    }),
  )
    .setFootprint([...reads.values()], [...writes.values()])
    .build()
}

/** `first` is not the sender, whose keys would be lost. */
interface Recipients {
  first: string
  other: string
}

function redirectKeys(keys: readonly xdr.LedgerKey[], { first, other }: Recipients): xdr.LedgerKey[] {
  if (first === other) return [...keys]
  const [old, next] = [first, other].map((strkey) => Buffer.from(new Address(strkey).toScAddress().toXdr()))
  if (!old || !next) return [...keys]
  return keys.map((key) => {
    const bytes = Buffer.from(key.toXdr())
    const at = bytes.indexOf(old)
    if (at < 0) return key
    return xdr.LedgerKey.fromXdr(Buffer.concat([bytes.subarray(0, at), next, bytes.subarray(at + old.length)]))
  })
}

/** By their XDR, without those of `taken`: a key named twice makes a transaction invalid. */
function unique(
  keys: readonly xdr.LedgerKey[],
  taken: ReadonlyMap<string, xdr.LedgerKey> = new Map(),
): Map<string, xdr.LedgerKey> {
  const byXdr = new Map(keys.map((key): [string, xdr.LedgerKey] => [key.toXdr('base64'), key]))
  for (const name of taken.keys()) byXdr.delete(name)
  return byXdr
}
