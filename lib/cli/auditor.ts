import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { environment } from '#lib/config/environment.ts'
import { explainDisclosure } from './client/disclosure.ts'
import { answerRequest } from './client/disclosure-answer.ts'
import { openNetwork } from './client/participants.ts'
import { makeAudit } from './client/statements.ts'
import { runCommand } from './process/command.ts'

const USAGE = `Usage: npm run -s auditor -- <command> [options]

  disclose --key auditor.json --request request.json [--hash …] --out bundle.json
                                        answers a request to disclose a payment or a total (docs/disclosure.md)

  statement --key auditor.json [--account G…] [--from 2026-01-01] [--to 2026-07-01] [--format table|csv|json|html]
                                        every operation of the account, or of all, with its balances afterwards; --to is
                                        excluded

  --key FILE      an auditor's secret: { "secret": "<64 hex digits>" }; repeat it for keys before a rotation
                  (the embedded ledger's is .data/ledger/auditor.json)
  --archive URL   an archive with the events that the RPC has dropped; may be repeated; none: use the RPC alone
                  (default: the archive in the deployment document)
  --network FILE_OR_URL
                  the deployment document of the network
                  (http://localhost:${environment().DEVNET_PORT}/deployment.json, from DEVNET_PORT)
`

interface Given {
  key?: string[] | undefined
  request?: string | undefined
  hash?: string | undefined
  out?: string | undefined
  account?: string | undefined
  from?: string | undefined
  to?: string | undefined
  format?: string | undefined
  archive?: string[] | undefined
  network: string
}

const COMMANDS: Record<string, (given: Given) => Promise<string>> = {
  disclose: async (given) => {
    const files = { request: need(given.request, 'request'), out: need(given.out, 'out'), hash: given.hash }
    const auditorSecrets = await readSecrets(given)
    return await answerRequest(await openNetworkOf(given), { auditorSecrets }, files)
  },
  statement: async (given) => {
    const secrets = await readSecrets(given)
    return await makeAudit(await openNetworkOf(given), secrets, given)
  },
}

/** The network, with the named archives or its own. */
const openNetworkOf = ({ network, archive }: Given) =>
  openNetwork(
    network,
    undefined,
    archive?.filter((url) => url !== 'none'),
  )

const SECRET = z.object({ secret: z.string().regex(/^[0-9a-f]{64}$/, 'an auditor’s secret has 64 hex digits') })

async function readSecrets({ key = [] }: Given): Promise<bigint[]> {
  if (key.length === 0) throw new Error(`--key is missing\n\n${USAGE}`)
  const files = await Promise.all(key.map((path) => readFile(path, 'utf8')))
  return files.map((content) => BigInt(`0x${SECRET.parse(JSON.parse(content)).secret}`))
}

function need(value: string | undefined, option: string): string {
  if (value === undefined) throw new Error(`--${option} is missing\n\n${USAGE}`)
  return value
}

await runCommand({
  usage: USAGE,
  options: {
    key: { type: 'string', multiple: true },
    request: { type: 'string' },
    hash: { type: 'string' },
    out: { type: 'string' },
    account: { type: 'string' },
    from: { type: 'string' },
    to: { type: 'string' },
    format: { type: 'string' },
    archive: { type: 'string', multiple: true },
    network: { type: 'string', default: `http://localhost:${environment().DEVNET_PORT}/deployment.json` },
  },
  explain: explainDisclosure,
  run: async (given, [name = '']) => {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (!command) throw new Error(USAGE)
    console.log(await command(given))
  },
})
