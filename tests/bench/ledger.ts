import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Asset, Keypair, Operation, rpc, TransactionBuilder } from '@stellar/stellar-sdk'
import { endow, enrol, openTestNetwork } from '#lib/cli/client/participants.ts'
import {
  type Devnet,
  devnetKeys,
  multiplyLimits,
  NETWORK_LEDGER_LIMITS,
  type ProofMode,
  startDevnet,
} from '#lib/devnet/devnet.ts'
import { openProver } from '#lib/prover/node/prover.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { Figure } from './directory.ts'

const TRANSFERS = 100
/** The number of ledgers in the embedded ledger's history. */
const RETENTION = 17_280
const MEBIBYTE = 1024 * 1024
const FOLDERS = { circuits: 'lib/prover/circuits', referenceString: 'lib/prover/reference-string' }
const PASSPHRASE = 'Standalone Network ; February 2017'

/** The embedded ledger: how long a full ledger takes, how many transfers testnet's limits let in, and what stays in memory. */
export async function measureLedger(): Promise<Figure[]> {
  return [
    ...(await withDevnet({ limits: multiplyLimits(NETWORK_LEDGER_LIMITS, TRANSFERS), proofs: 'real' }, measureClose)),
    ...(await withDevnet({ proofs: 'stand-in' }, measureRoom)),
    await measureMemory(),
  ]
}

/** Sends a transfer from every `step`th account to the next, and returns how many wait for a ledger. */
type Send = (step: number) => Promise<number>

async function withDevnet(
  options: { limits?: typeof NETWORK_LEDGER_LIMITS; proofs: ProofMode },
  measure: (devnet: Devnet, send: Send) => Promise<Figure[]>,
): Promise<Figure[]> {
  const devnet = await startDevnet({ directory: null, port: 0, closeMs: 0, passphrase: PASSPHRASE, ...options })
  const timer = setInterval(devnet.closeLedger, 100)
  const prover = options.proofs === 'real' ? await openProver(FOLDERS) : undefined
  try {
    const network = await openTestNetwork(`${devnet.url}/deployment.json`, prover)
    const issuer = Keypair.fromSecret(devnet.issuerSecret)
    const payers: { holder: Holder; opening: Opening }[] = []
    for (let count = 0; count < TRANSFERS; count += 1) {
      const holder = await enrol(network)
      payers.push({ holder, opening: await endow(network, issuer, holder, 1_000n) })
    }
    clearInterval(timer)
    devnet.closeLedger()
    const send: Send = async (step) => {
      const paying = payers.filter((_, index) => index % step === 0)
      const sent = paying.map(async ({ holder, opening }, index) => {
        const payee = payers[(index * step + 1) % TRANSFERS]?.holder
        if (!payee) throw new Error('nobody to pay')
        const payout = { to: payee.signer.publicKey(), amount: 1n, opening }
        const { signedXdr } = await buildTransfer(network, holder, payout, { seconds: 900 })
        return await sendTransaction(devnet, signedXdr)
      })
      return (await Promise.all(sent)).filter((status) => status === 'PENDING').length
    }
    return await measure(devnet, send)
  } finally {
    clearInterval(timer)
    await prover?.destroy()
    await devnet.close()
  }
}

async function measureClose(devnet: Devnet, send: Send): Promise<Figure[]> {
  await send(1)
  const [began, start] = [performance.now(), process.cpuUsage()]
  devnet.closeLedger()
  const { user, system } = process.cpuUsage(start)
  const elapsed = performance.now() - began
  const paid = (await readLatest(devnet)).filter(({ status }) => status === 'SUCCESS')
  return [
    {
      name: 'a ledger with 100 transfers closes, proofs known',
      found: `${elapsed.toFixed(0)} ms, ${((user + system) / 1000).toFixed(0)} ms of CPU, ${paid.length} paid`,
      goal: '1 s, 100 paid',
    },
  ]
}

async function measureRoom(devnet: Devnet, send: Send): Promise<Figure[]> {
  const pending = await send(2)
  devnet.closeLedger()
  const taken = await readLatest(devnet)
  return [
    {
      name: 'testnet’s limits, 50 transfers at once',
      found: `the queue takes ${pending}, a ledger ${taken.length}`,
      goal: '16 and 8',
    },
  ]
}

/** The transactions of the latest ledger. */
async function readLatest(devnet: Devnet) {
  const server = new rpc.Server(devnet.rpcUrl, { allowHttp: true })
  const { latestLedger } = await server.getHealth()
  return (await server.getTransactions({ startLedger: latestLedger, pagination: { limit: 200 } })).transactions
}

/**
 * Bodies of ledgers are read from disk; what stays is an index of the retained ledgers and their transactions. A payment
 * is in every ledger: the index and the database both grow.
 */
async function measureMemory(): Promise<Figure> {
  const directory = mkdtempSync(join(tmpdir(), 'ledger-'))
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  const heap = () => {
    collect()
    return process.memoryUsage().heapUsed / MEBIBYTE
  }
  const before = heap()
  const devnet = await startDevnet({ directory, port: 0, closeMs: 0, passphrase: PASSPHRASE })
  try {
    const pay = await openPayer(devnet)
    const grown: string[] = []
    for (let round = 0; round < 3; round += 1) {
      for (let ledger = 0; ledger < RETENTION; ledger += 1) {
        await pay()
        devnet.closeLedger()
      }
      grown.push((heap() - before).toFixed(0))
    }
    return {
      name: 'heap after one, two, three histories with a payment in each ledger',
      found: `${grown.join(', ')} MiB`,
      goal: 'flat from the first',
    }
  } finally {
    await devnet.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Sends payments from the root account to itself, one per ledger. */
async function openPayer(devnet: Devnet): Promise<() => Promise<void>> {
  const { root } = devnetKeys(PASSPHRASE)
  const account = await new rpc.Server(devnet.rpcUrl, { allowHttp: true }).getAccount(root.publicKey())
  const operation = Operation.payment({ destination: root.publicKey(), asset: Asset.native(), amount: '1' })
  return async () => {
    const payment = new TransactionBuilder(account, { fee: '100', networkPassphrase: PASSPHRASE })
      .addOperation(operation)
      .setTimeout(0)
      .build()
    payment.sign(root)
    const status = await sendTransaction(devnet, payment.toXdr())
    if (status !== 'PENDING') throw new Error(`the payment came to ${status}`)
  }
}

async function sendTransaction(devnet: Devnet, transaction: string): Promise<string> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sendTransaction', params: { transaction } })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(devnet.rpcUrl, { method: 'POST', headers, body })
  const { result } = await response.json()
  return result.status
}
