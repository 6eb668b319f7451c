import { Address, Asset, nativeToScVal, xdr } from '@stellar/stellar-sdk'
import { baseAccount } from '#lib/stellar/node/envelope.ts'
import { issuerOf } from '../state/ledger-key.ts'

/** One movement of an asset by a classic operation or by fees. Amounts are in 10^-7 units. */
interface Movement {
  readonly passphrase: string
  readonly asset: xdr.Asset
  readonly from: string
  readonly to: xdr.MuxedAccount
  readonly amount: bigint
  readonly memo: xdr.Memo
}

/** The event of a classic payment, as the asset's contract would emit it (CAP-67): transfer, mint or burn. */
export function movementEvent({ passphrase, asset, from, to, amount, memo }: Movement): xdr.ContractEvent {
  const issuer = issuerOf(asset)
  const recipient = baseAccount(to)
  const name = xdr.ScVal.scvString(assetName(asset))
  const receiver = addressValue(recipient)
  if (issuer === recipient && issuer !== from) {
    return assetEvent(passphrase, asset, [symbol('burn'), addressValue(from), name], amountValue(amount))
  }
  const data = withRecipientId(amountValue(amount), to, memo)
  if (issuer === from && issuer !== recipient) {
    return assetEvent(passphrase, asset, [symbol('mint'), receiver, name], data)
  }
  return assetEvent(passphrase, asset, [symbol('transfer'), addressValue(from), receiver, name], data)
}

/** The event of a fee (positive) or of its refund (negative), in stroops. */
export function feeEvent(passphrase: string, payer: string, amount: bigint): xdr.ContractEvent {
  const native = xdr.Asset.assetTypeNative()
  return assetEvent(passphrase, native, [symbol('fee'), addressValue(payer)], amountValue(amount))
}

function assetEvent(passphrase: string, asset: xdr.Asset, topics: xdr.ScVal[], data: xdr.ScVal): xdr.ContractEvent {
  return new xdr.ContractEvent({
    ext: xdr.ExtensionPoint.v0(),
    contractId: contractIdOf(asset, passphrase),
    type: xdr.ContractEventType.contract,
    body: xdr.ContractEventBody.v0(new xdr.ContractEventV0({ topics, data })),
  })
}

/** CAP-67: the id of a muxed recipient, or else the memo, turns the data into a map. */
function withRecipientId(amount: xdr.ScVal, to: xdr.MuxedAccount, memo: xdr.Memo): xdr.ScVal {
  const id = to.type === 'keyTypeMuxedEd25519' ? xdr.ScVal.scvU64(to.med25519.id) : memoValue(memo)
  if (!id) return amount
  return xdr.ScVal.scvMap([
    new xdr.ScMapEntry({ key: symbol('amount'), val: amount }),
    new xdr.ScMapEntry({ key: symbol('to_muxed_id'), val: id }),
  ])
}

function memoValue(memo: xdr.Memo): xdr.ScVal | undefined {
  switch (memo.type) {
    case 'memoId':
      return xdr.ScVal.scvU64(memo.id)
    case 'memoText':
      return xdr.ScVal.scvString(memo.text)
    case 'memoHash':
      return xdr.ScVal.scvBytes(memo.hash.value)
    case 'memoReturn':
      return xdr.ScVal.scvBytes(memo.retHash.value)
    default:
      return undefined
  }
}

function assetName(asset: xdr.Asset): string {
  return Asset.fromOperation(asset).toString()
}

const contractIds = new Map<string, xdr.ContractId>()

function contractIdOf(asset: xdr.Asset, passphrase: string): xdr.ContractId {
  const native = asset.type === 'assetTypeNative' ? passphrase : undefined
  const cached = native === undefined ? undefined : contractIds.get(native)
  if (cached) return cached
  const address = Address.fromString(Asset.fromOperation(asset).contractId(passphrase)).toScAddress()
  if (address.type !== 'scAddressTypeContract') throw new Error('an asset contract has a contract address')
  if (native !== undefined) contractIds.set(native, address.contractId)
  return address.contractId
}

const symbol = (text: string) => xdr.ScVal.scvSymbol(text)
const addressValue = (id: string) => Address.fromString(id).toScVal()
const amountValue = (amount: bigint) => nativeToScVal(amount, { type: 'i128' })
