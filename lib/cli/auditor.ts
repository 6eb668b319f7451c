import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { explainDisclosure } from './client/disclosure.ts'
import { answerRequest } from './client/disclosure-answer.ts'
import { NETWORK_OPTIONS, NETWORK_USAGE, openNetworkOf } from './client/network-options.ts'
import { makeAudit } from './client/statements.ts'
import { need, runCommands, UsageError, type Values } from './process/command.ts'

const USAGE = `Usage: npm run -s auditor -- <command> [options]

  disclose --key auditor.json --request request.json [--hash …] --out bundle.json
                                        answers a request to disclose a payment or a total (docs/disclosure.md)

  statement --key auditor.json [--account G…] [--from 2026-01-01] [--to 2026-07-01] [--format table|csv|json|html]
                                        every operation of the account, or of all, with its balances afterwards; --to is
                                        excluded

  --key FILE      an auditor's secret: { "secret": "<64 hex digits>" }; repeat it for keys before a rotation
                  (the embedded ledger's is .data/ledger/auditor.json)
${NETWORK_USAGE}`

const OPTIONS = {
  key: { type: 'string', multiple: true },
  request: { type: 'string' },
  hash: { type: 'string' },
  out: { type: 'string' },
  account: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  format: { type: 'string' },
  ...NETWORK_OPTIONS,
} as const

const SECRET = z.object({ secret: z.string().regex(/^[0-9a-f]{64}$/, 'an auditor’s secret has 64 hex digits') })

async function readSecrets({ key }: Values<typeof OPTIONS>): Promise<bigint[]> {
  if (!key) throw new UsageError('--key is missing')
  const files = await Promise.all(key.map((path) => readFile(path, 'utf8')))
  return files.map((content) => BigInt(`0x${SECRET.parse(JSON.parse(content)).secret}`))
}

await runCommands({
  usage: USAGE,
  options: OPTIONS,
  explain: explainDisclosure,
  commands: {
    disclose: async (given) => {
      const files = { request: need(given, 'request'), out: need(given, 'out'), hash: given.hash }
      const auditorSecrets = await readSecrets(given)
      return await answerRequest(await openNetworkOf(given), { auditorSecrets }, files)
    },
    statement: async (given) => {
      const secrets = await readSecrets(given)
      return await makeAudit(await openNetworkOf(given), secrets, given)
    },
  },
})
