import type { DisclosureCircuit, DisclosureRole } from '../disclosure-circuits.ts'

/** The main function of a disclosure circuit. Its parameters are the secrets, then the public inputs in their order. */
export function disclosureSource(circuit: DisclosureCircuit): string {
  const { secrets, inputs, body } = circuit.kind === 'balance' ? BALANCE : blockOf(circuit)
  const isValue = circuit.disclosed === 'value'
  const tag = circuit.kind === 'total' ? 'disclosure::DISCLOSED_TOTAL' : 'disclosure::DISCLOSED_VALUE'
  const parameters = [
    ...secrets,
    ...(isValue ? ['r_d: Field'] : []),
    ...inputs,
    // A threshold reveals nothing else. As public inputs, the requester's key and nonce bind the proof to the request.
    ...(isValue ? ['p_r: pub [Field; 2]', 'nonce: pub Field'] : ['_p_r: pub [Field; 2]', 'nonce: pub Field']),
    isValue ? 'sealed: pub [Field; 3]' : 'threshold: pub Field',
  ]
  const disclose = {
    value: `disclosure::assert_sealed(generators, ${tag}, disclosed, r_d, p_r, nonce, sealed);`,
    'at-least': 'disclosure::assert_at_least(disclosed, threshold);',
    'at-most': 'disclosure::assert_at_most(disclosed, threshold);',
  }[circuit.disclosed]
  const lines = ['let generators = equations::Generators::from_public(nonce);', ...body, disclose]
  return `fn main(
${parameters.map((parameter) => `    ${parameter},`).join('\n')}
) {
${lines.map((line) => `    ${line}`).join('\n')}
}
`
}

interface Block {
  secrets: string[]
  inputs: string[]
  /** Ends with `disclosed`. */
  body: string[]
}

const BALANCE: Block = {
  secrets: ['sk: Field', 'v: Field', 'r: Field'],
  inputs: ['addr_f: pub Field', 'pvk: pub [Field; 2]', 'c_spend: pub [Field; 2]'],
  body: ['disclosure::assert_balance(generators, sk, v, r, addr_f, pvk, c_spend);', 'let disclosed = v;'],
}

/** The payments of a role. One payment has neither a count nor an unused slot. */
function blockOf({ kind, role, slots }: Exclude<DisclosureCircuit, { kind: 'balance' }>): Block {
  const { secrets, inputs, words, key, slot } = ROLES[role]
  const isSingle = kind === 'payment'
  const count = isSingle ? [] : ['count: pub u32']
  const active = isSingle ? 'true' : '(i as u32) < count'
  return {
    secrets: [...secrets(slots), `v: [Field; ${slots}]`],
    inputs: [...inputs, ...count, `payments: pub [[Field; ${words}]; ${slots}]`],
    body: [
      ...(isSingle ? [] : [`disclosure::assert_count(count, ${slots});`]),
      ...key,
      'let mut disclosed: Field = 0;',
      `for i in 0..${slots} {`,
      `    let active = ${active};`,
      `    ${slot}`,
      '    disclosed += v[i];',
      '}',
      ...(isSingle ? [] : ['disclosure::assert_amount(disclosed);']),
    ],
  }
}

interface RoleSource {
  secrets(slots: number): string[]
  inputs: string[]
  /** The public inputs of one payment. */
  words: number
  key: string[]
  slot: string
}

const auditor = (channel: 'RECIPIENT' | 'SENDER'): RoleSource => ({
  secrets: () => ['k: Field'],
  inputs: ['k_aud: pub [Field; 2]'],
  words: 4,
  key: ['disclosure::assert_auditor_key(generators, k, k_aud);'],
  slot: `disclosure::assert_audited(generators, active, disclosure::${channel}_CHANNEL, k, v[i], payments[i]);`,
})

const ROLES: Record<DisclosureRole, RoleSource> = {
  recipient: {
    secrets: () => ['sk: Field'],
    inputs: ['addr_f: pub Field', 'pvk: pub [Field; 2]'],
    words: 4,
    key: ['let vk = disclosure::derive_viewing_secret(generators, true, sk, addr_f, pvk);'],
    slot: 'disclosure::assert_received(generators, active, vk, v[i], payments[i]);',
  },
  sender: {
    secrets: (slots) => [`sk: [Field; ${slots}]`, `r_e: [Field; ${slots}]`],
    inputs: ['addr_f: pub Field'],
    words: 8,
    key: [],
    slot: 'disclosure::assert_sent(generators, active, sk[i], r_e[i], v[i], addr_f, payments[i]);',
  },
  'auditor-recipient': auditor('RECIPIENT'),
  'auditor-sender': auditor('SENDER'),
}
