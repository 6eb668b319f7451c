import { xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { decodeCallData, encodeCallData } from '#lib/wallet/call-data.ts'
import { encryptTransfer, encryptWithdrawal } from '#lib/wallet/encryption.ts'
import { PROOF_BYTES } from '#lib/wallet/prover.ts'
import { auditor, hex, holder } from './fixtures.ts'

const { keys } = holder('employer')
const { key } = auditor('auditor')
const opening = { value: 100n, blinding: 1n }
const proof = new Uint8Array(PROOF_BYTES).fill(9)
const transfer = encryptTransfer({
  keys,
  opening,
  amount: 1n,
  viewingKey: holder('contractor').keys.viewingKey,
  auditorRecipient: key,
  auditorSender: key,
  salt: 1n,
}).payload

describe('the data of a call', () => {
  test.each([
    ['register', { y: keys.spendingKey, pvk: keys.viewingKey }, 14_824],
    ['withdraw', encryptWithdrawal({ keys, opening, amount: 1n, auditorSender: key, salt: 1n }).payload, 15_080],
    ['confidential_transfer', transfer, 15_420],
  ])('%s has the size that the network knows', (_, payload, size) => {
    expect(encodeCallData(payload, proof)).toHaveLength(size)
  })

  test('has both maps in ascending order, as the host requires', () => {
    const value = xdr.ScVal.fromXdr(encodeCallData(transfer, proof))
    const outer = entries(value)
    expect(outer.map(([name]) => name)).toEqual(['payload', 'proof'])
    const names = entries(outer[0]?.[1]).map(([name]) => name)
    expect(names).toEqual(
      `b_tilde b_tilde_aud_s c_spend_new c_transfer r_e_point r_tilde_aud_r r_tilde_aud_s sigma v_tilde v_tilde_aud_r v_tilde_aud_s`.split(
        ' ',
      ),
    )
  })

  test('round-trips with any names in the payload', () => {
    const payload = { ...transfer, c_tx: new Uint8Array(64), zz: new Uint8Array(1) }
    const decoded = decodeCallData(encodeCallData(payload, proof))
    expect(hex(decoded.proof)).toBe(hex(proof))
    expect(Object.keys(decoded.payload)).toEqual(Object.keys(payload).toSorted())
    for (const [name, value] of Object.entries(payload))
      expect(hex(decoded.payload[name] ?? new Uint8Array())).toBe(hex(value))
  })

  const good = encodeCallData({ a: new Uint8Array(1) }, proof)
  const map = (...pairs: [string, xdr.ScVal][]) =>
    xdr.ScVal.scvMap(pairs.map(([name, val]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })))
  test.each([
    ['nothing', new Uint8Array()],
    ['no XDR', new Uint8Array(40).fill(255)],
    ['cut short', good.subarray(0, -4)],
    ['something after it', new Uint8Array([...good, 0, 0, 0, 0])],
    ['bytes', xdr.ScVal.scvBytes(proof).toXdr()],
    ['nothing in it', xdr.ScVal.scvVoid().toXdr()],
    ['no proof', map(['payload', map()]).toXdr()],
    ['no payload', map(['proof', xdr.ScVal.scvBytes(proof)]).toXdr()],
    ['a proof that is not bytes', map(['payload', map()], ['proof', xdr.ScVal.scvU32(1)]).toXdr()],
    ['a payload of bytes', map(['payload', xdr.ScVal.scvBytes(proof)], ['proof', xdr.ScVal.scvBytes(proof)]).toXdr()],
    [
      'a field that is a number',
      map(['payload', map(['a', xdr.ScVal.scvU32(1)])], ['proof', xdr.ScVal.scvBytes(proof)]).toXdr(),
    ],
  ])('refuses %s', (_, data) => {
    expect(() => decodeCallData(data)).toThrowError(expect.objectContaining({ name: 'WalletError', code: 'malformed' }))
  })
})

function entries(value: xdr.ScVal | undefined): [string, xdr.ScVal][] {
  if (value?.type !== 'scvMap') throw new Error('not a map')
  return (value.map ?? []).map(({ key, val }) => {
    if (key.type !== 'scvSymbol') throw new Error('not a symbol')
    return [String(key.value), val]
  })
}
