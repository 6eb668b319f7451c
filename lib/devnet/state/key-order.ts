import type { xdr } from '@stellar/stellar-sdk'

/** The order of ledger keys in a footprint: by type, then field by field, as derived by the host. */
export function compareKeys(left: xdr.LedgerKey, right: xdr.LedgerKey): number {
  if (left.type !== 'contractData' || right.type !== 'contractData') return compareXdr(left, right)
  const [one, other] = [left.contractData, right.contractData]
  return (
    compareXdr(one.contract, other.contract) ||
    compareValues(one.key, other.key) ||
    one.durability.value - other.durability.value
  )
}

/** Compares symbols and vectors item by item; in XDR, their length comes first. */
function compareValues(left: xdr.ScVal, right: xdr.ScVal): number {
  if (left.type === 'scvVec' && right.type === 'scvVec') {
    const [one, other] = [left.vec ?? [], right.vec ?? []]
    for (const [index, value] of one.entries()) {
      const counterpart = other[index]
      const order = counterpart ? compareValues(value, counterpart) : 1
      if (order !== 0) return order
    }
    return one.length - other.length
  }
  if (left.type === 'scvSymbol' && right.type === 'scvSymbol') {
    return Buffer.compare(Buffer.from(left.value), Buffer.from(right.value))
  }
  return compareXdr(left, right)
}

function compareXdr(left: { toXdr(): Uint8Array }, right: { toXdr(): Uint8Array }): number {
  return Buffer.compare(left.toXdr(), right.toXdr())
}
