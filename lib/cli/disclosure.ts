import type { Question } from '#lib/disclosure/request.ts'
import type { DisclosureRole } from '#lib/prover/disclosure-circuits.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import {
  explainDisclosure,
  presentVerified,
  presentVerifiedJson,
  verifyFiles,
  verifyRunFile,
  writeRequest,
} from './client/disclosure.ts'
import { NETWORK_OPTIONS } from './client/network-options.ts'
import { readDeployment } from './client/participants.ts'
import { instantOf } from './client/statements.ts'
import { need, runCommands, type Values } from './process/command.ts'

const USAGE = `Usage: npm run -s disclosure -- <command> [options]

  request --out request.json --key requester.json --account G… --role recipient|sender|auditor
                                        asks for one payment of the account, which its holder names
          --from 2026-01-01 --to 2026-07-01
                                        asks for the total of a period; the end is excluded
          --at-least 10000              asks for a proof that the total reaches this amount, not for the total
          --channel recipient|sender    of an auditor: payments to the account (default), or payments by it
  request --out request.json --key requester.json --account G… --balance value|at-least:N|at-most:N
                                        asks for the spendable balance
  verify  --request request.json --key requester.json --bundle bundle.json [--archive URL …] [--json]
                                        prints the disclosed value and the payments, or the step that fails
  verify-run --evidence evidence.json [--archive URL …]
                                        checks what was signed for a run, by whom, and that the payments are on the ledger;
                                        who the signers were then is what the file's author says

request.json is for the holder of the account and contains nothing secret. requester.json contains the secret key: it is
made for the first request and can serve for all.

  --archive URL   reads events that the RPC has dropped; several archives must agree. Choose operators whom you trust, and
                  never the party that discloses: a trusted archive can invent a payment
  --network FILE_OR_URL
                  the deployment document of the network; verify uses its RPC only
                  (${NETWORK_OPTIONS.network.default}, from DEVNET_PORT)
`

const OPTIONS = {
  out: { type: 'string' },
  key: { type: 'string' },
  account: { type: 'string' },
  role: { type: 'string' },
  channel: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  'at-least': { type: 'string' },
  balance: { type: 'string' },
  request: { type: 'string' },
  bundle: { type: 'string' },
  evidence: { type: 'string' },
  json: { type: 'boolean' },
  ...NETWORK_OPTIONS,
} as const

async function readQuestion(given: Values<typeof OPTIONS>): Promise<Question> {
  const { passphrase: network, contracts } = await readDeployment(given.network)
  const shared = { network, token: contracts.token, account: need(given, 'account') }
  if (given.balance !== undefined) return { ...shared, statement: 'balance', ...readBalanceBound(given.balance) }
  const role = readRole(need(given, 'role'), given.channel ?? 'recipient')
  const { from, to, 'at-least': atLeast } = given
  if (from === undefined && to === undefined) {
    if (atLeast !== undefined) throw new Error('--at-least needs a period: --from and --to')
    return { ...shared, role, statement: 'payment' }
  }
  const period = { from: instantOf(need(given, 'from')), to: instantOf(need(given, 'to')) }
  return { ...shared, role, statement: 'total', period, ...(atLeast !== undefined && { atLeast: decimal(atLeast) }) }
}

function readRole(role: string, channel: string): DisclosureRole {
  const roles: Record<string, DisclosureRole> = {
    recipient: 'recipient',
    sender: 'sender',
    'auditor recipient': 'auditor-recipient',
    'auditor sender': 'auditor-sender',
  }
  const found = roles[role === 'auditor' ? `auditor ${channel}` : role]
  if (!found) throw new Error('--role is recipient, sender or auditor; --channel is recipient or sender')
  return found
}

function readBalanceBound(text: string): { atLeast?: string; atMost?: string } {
  const [kind, amount] = text.split(':')
  if (kind === 'value' && amount === undefined) return {}
  if (kind === 'at-least' && amount !== undefined) return { atLeast: decimal(amount) }
  if (kind === 'at-most' && amount !== undefined) return { atMost: decimal(amount) }
  throw new Error('--balance is value, at-least:N or at-most:N')
}

const decimal = (text: string): string => formatUnits(parseUnits(text))

await runCommands({
  usage: USAGE,
  options: OPTIONS,
  explain: explainDisclosure,
  commands: {
    request: async (given) =>
      writeRequest(await readQuestion(given), { out: need(given, 'out'), key: need(given, 'key') }),
    'verify-run': async (given) => {
      const { network, archive: archives = [] } = given
      return await verifyRunFile({ evidence: need(given, 'evidence'), network, archives })
    },
    verify: async (given) => {
      const files = { request: need(given, 'request'), key: need(given, 'key'), bundle: need(given, 'bundle') }
      const { network, archive: archives = [], json } = given
      const { request, verified } = await verifyFiles({ ...files, network, archives })
      return json ? presentVerifiedJson(request, verified) : presentVerified(request, verified)
    },
  },
})
