import { connect, type Socket } from 'node:net'
import { isMainThread, workerData } from 'node:worker_threads'
import { Account, Keypair, Operation, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { load } from './load.ts'

/** An attacker's knowledge: the address of the service, and a session that anyone can have. */
export interface Target {
  base: string
  session: string
  /** the seed of the account that the session is of */
  seed: string
  batch: string
  largeBatch: string
}

/** One malicious client, which continues until its thread is ended. */
interface Attack {
  name: string
  run(target: Target): Promise<unknown>
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

type Asked = [method: string, path: string, headers?: Record<string, string>, body?: string]

let clients = 0

/** A new address each time: an attacker has many, and a limit per address stops none of them. */
function newClient(): string {
  clients += 1
  return `10.${(clients >> 16) & 255}.${(clients >> 8) & 255}.${clients & 255}`
}

const flood =
  (connections: number, asked: (target: Target) => Asked) =>
  (target: Target): Promise<unknown> => {
    const [method, path, headers = {}, body] = asked(target)
    const options = { method, headers, client: newClient, ...(body !== undefined && { body }) }
    return load(`${target.base}${path}`, options, { connections, seconds: 0, until: () => false })
  }

const withSession = ({ session }: Target) => ({ ...JSON_TYPE, Authorization: `Bearer ${session}` })

const rowsOfNames = (count: number) => JSON.stringify({ rows: Array.from({ length: count }, () => ({ name: 'n' })) })

/** A signed call with an argument of this many values. */
function transactionOf(key: Keypair, values: number): string {
  const args = [xdr.ScVal.scvVec(Array.from({ length: values }, () => xdr.ScVal.scvVoid()))]
  const contract = 'CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE'
  const transaction = new TransactionBuilder(new Account(key.publicKey(), '1'), {
    fee: '100',
    networkPassphrase: 'any',
    timebounds: { minTime: 0, maxTime: 0 },
  })
    .addOperation(Operation.invokeContractFunction({ contract, function: 'confidential_transfer', args }))
    .build()
  transaction.sign(key)
  return transaction.toXdr()
}

export const ATTACKS: readonly Attack[] = [
  { name: 'nothing', run: async () => undefined },
  { name: '20 at once: GET /docs', run: flood(20, () => ['GET', '/docs']) },
  { name: '1,000 at once: GET /', run: flood(1_000, () => ['GET', '/']) },
  {
    name: '100 at once: POST / of 10 MB',
    run: flood(100, () => ['POST', '/', JSON_TYPE, 'x'.repeat(10 * 1024 * 1024)]),
  },
  {
    name: '100 at once: POST /api/contractors of 10 MB',
    run: flood(100, (target) => ['POST', '/api/contractors', withSession(target), 'x'.repeat(10 * 1024 * 1024)]),
  },
  { name: '100 at once: GET /sign-in', run: flood(100, () => ['GET', '/sign-in']) },
  { name: '100 at once: pages that are not there', run: flood(100, () => ['GET', '/nowhere']) },
  { name: '100 at once: GET /api/openapi.json', run: flood(100, () => ['GET', '/api/openapi.json']) },
  {
    name: '300 at once: wrong passwords',
    run: flood(300, ({ base }) => {
      const form = {
        'Content-Type': 'application/x-www-form-urlencoded',
        Origin: base.replace('127.0.0.1', 'localhost'),
      }
      return ['POST', '/sign-in/password', form, 'name=mallory&password=wrong']
    }),
  },
  {
    name: '100 at once: imports of 20,000 rows',
    run: flood(100, (target) => ['POST', '/api/contractors/bulk', withSession(target), rowsOfNames(20_000)]),
  },
  {
    name: '100 at once: POST /contractors',
    run: flood(100, (target) => ['POST', '/api/contractors', withSession(target), '{"name":"n"}']),
  },
  {
    name: '100 at once: PATCH /me',
    run: flood(100, (target) => ['PATCH', '/api/me', withSession(target), '{"orgName":"n"}']),
  },
  {
    name: '4 at once: imports of 2,000 rows',
    run: flood(4, (target) => ['POST', '/api/contractors/bulk', withSession(target), rowsOfNames(2_000)]),
  },
  {
    name: '300 at once: 130,000 bad instructions',
    run: flood(300, (target) => {
      const body = `{"instructions":[${Array(130_000).fill('0').join(',')}]}`
      return ['POST', `/api/batches/${target.batch}/instructions`, withSession(target), body]
    }),
  },
  {
    name: '100 at once: transactions of 160 KB',
    // As large as the service decodes, from an account other than the caller's.
    run: flood(100, (target) => {
      const signedXDR = transactionOf(Keypair.random(), 30_000)
      return ['POST', '/api/transfer', withSession(target), JSON.stringify({ signedXDR })]
    }),
  },
  {
    name: '100 at once: transfers that are refused (422)',
    run: flood(100, (target) => {
      const signedXDR = transactionOf(Keypair.fromSecret(target.seed), 1)
      return ['POST', '/api/transfer', withSession(target), JSON.stringify({ signedXDR })]
    }),
  },
  {
    name: '100 at once: garbage for SEP-10',
    run: flood(100, () => {
      return ['POST', '/api/auth/sep10/verify', JSON_TYPE, JSON.stringify({ transaction: 'A'.repeat(8_000) })]
    }),
  },
  { name: '100 at once: challenges', run: flood(100, () => ['GET', '/api/auth/sep10/challenge?account=G']) },
  {
    name: '100 at once: sessions that are none',
    run: flood(100, () => ['GET', '/api/me', { Authorization: 'Bearer x.y.z' }]),
  },
  {
    name: '100 at once: lists of 1,000 payouts',
    run: flood(100, (target) => ['GET', '/api/payouts', withSession(target)]),
  },
  {
    name: '100 at once: a batch of 50,000 payouts',
    run: flood(100, (target) => ['GET', `/api/batches/${target.largeBatch}`, withSession(target)]),
  },
  { name: '10,000 half-sent bodies', run: (target) => sendHalves(target, 10_000) },
]

/** Connections that start a body and never finish it. Those closed by the service are not reopened. */
async function sendHalves({ base, session }: Target, count: number): Promise<void> {
  const { port, hostname } = new URL(base)
  const head = `POST /api/transfer HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${session}\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n`
  const sockets: Socket[] = []
  const half = `${head}{"signedXDR":"${'A'.repeat(30_000)}`
  while (sockets.length < count) {
    const socket = connect(Number(port), hostname, () => socket.write(half))
    socket.on('error', () => undefined)
    sockets.push(socket)
    if (sockets.length % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await new Promise(() => undefined)
}

if (!isMainThread) {
  const { name, target } = workerData as { name: string; target: Target }
  void ATTACKS.find((attack) => attack.name === name)?.run(target)
}
