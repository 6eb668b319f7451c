import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { commit } from '#lib/wallet/commitment.ts'
import { sharedSecret } from '#lib/wallet/encryption.ts'
import { encodePoint, FIELD, H, multiply, type Point } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import { hash, lanes, TAG } from '#lib/wallet/poseidon.ts'

/** The published fixtures; the file names their source. */
const { primitives }: { primitives: Record<string, { inputs: Inputs; output: unknown }[]> } = JSON.parse(
  readFileSync(new URL('vectors/primitives-0.8.0.json', import.meta.url), 'utf8'),
)

type Inputs = Record<string, string | string[]>

const affine = (point: Point) => point.toAffine()
const encrypt = (value: bigint, mask: bigint) => (value + mask) % FIELD

/** How the wallet computes each primitive, from inputs by their published names. */
const COMPUTE: Record<string, (field: (name: string) => bigint, inputs: Inputs) => unknown> = {
  address_to_field: (_, { strkey }) => addressToField(String(strkey)),
  commit: (field) => affine(commit({ value: field('value'), blinding: field('randomness') })),
  derive_allow_r: (field) => hash(TAG.allowanceBlinding, field('dvk'), field('sigma_a')),
  derive_spend_r: (field) => hash(TAG.spendBlinding, field('vk'), field('sigma')),
  derive_transfer_blind: (field) => hash(TAG.transferBlinding, field('s'), field('sigma')),
  dvk_from_vk_op: (field) => hash(TAG.delegationKey, field('vk'), field('op_i')),
  ecdh: (field) => sharedSecret(field('scalar'), encodePoint(H)),
  encrypt_allowance: (field) => encrypt(field('v_a'), hash(TAG.allowance, field('dvk'), field('sigma_a'))),
  encrypt_amount: (field) => encrypt(field('v_transfer'), hash(TAG.transferAmount, field('s'), field('sigma'))),
  encrypt_balance: (field) => encrypt(field('v_new'), hash(TAG.balance, field('vk'), field('sigma'))),
  encrypt_esc_allow_r_auditor: (field) =>
    encrypt(field('r_a'), hash(TAG.allowanceEscrow, field('s_a_s'), field('op_i'))),
  encrypt_esc_dvk: (field) => encrypt(field('dvk'), hash(TAG.delegationEscrow, field('s'), field('op_i'))),
  poseidon_with_domain: (field, { inputs }) => hash(field('domain'), ...[inputs ?? []].flat().map(BigInt)),
  pvk_from_vk: (field) => affine(multiply(H, field('vk'))),
  scalar_mul: (field) => affine(multiply(H, field('scalar'))),
  sponge_squeeze_2: (field) => lanes(field('d'), field('s'), field('sigma')).slice(0, 2),
  sponge_squeeze_3: (field) => lanes(field('d'), field('s'), field('sigma')),
  vk_from_sk: (field) => hash(TAG.viewingKey, field('sk'), field('wrap')),
}

/** Fields as bigints, at any depth. */
const parse = (value: unknown): unknown => {
  if (typeof value === 'string') return BigInt(value)
  if (Array.isArray(value)) return value.map(parse)
  return Object.fromEntries(Object.entries(value as object).map(([name, part]) => [name, parse(part)]))
}

describe('the primitives of the wallet match the published fixtures', () => {
  test('and cover all of them', () => {
    expect(Object.keys(COMPUTE)).toEqual(Object.keys(primitives))
    expect(Object.keys(primitives)).toHaveLength(18)
  })

  const cases = Object.entries(primitives).flatMap(([name, list]) => list.map((fixture) => ({ name, ...fixture })))
  test.each(cases)('$name $inputs', ({ name, inputs, output }) => {
    const field = (input: string) => BigInt(String(inputs[input]))
    expect(COMPUTE[name]?.(field, inputs)).toEqual(parse(output))
  })
})
