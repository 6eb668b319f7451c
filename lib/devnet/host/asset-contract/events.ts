import type { Asset, xdr } from '@stellar/stellar-sdk'
import type { Call } from '../contract-function.ts'
import { address, i128, type MuxedAddress, string, struct, symbol, u64 } from '../scval.ts'
import { isIssuer, nameOf } from './metadata.ts'

/** Publishes `topic`, the addresses, and the asset's name as the last topic. */
export function publish(call: Call, asset: Asset, topic: string, addresses: string[], data: xdr.ScVal): void {
  call.publish([symbol(topic), ...addresses.map(address), string(nameOf(asset))], data)
}

/**
 * CAP-67: a transfer by the issuer is a mint, one to the issuer a burn; the event's data includes a muxed recipient's id.
 */
export function publishTransfer(call: Call, asset: Asset, from: string, to: MuxedAddress, amount: bigint): void {
  const data = to.id === undefined ? i128(amount) : struct({ amount: i128(amount), to_muxed_id: u64(to.id) })
  if (isIssuer(asset, from) && !isIssuer(asset, to.address)) publish(call, asset, 'mint', [to.address], data)
  else if (isIssuer(asset, to.address) && !isIssuer(asset, from)) publish(call, asset, 'burn', [from], i128(amount))
  else publish(call, asset, 'transfer', [from, to.address], data)
}
