import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keypair } from '@stellar/stellar-sdk'
import { enrol, openTestNetwork, type TestNetwork } from '#lib/cli/client/participants.ts'
import { startServing } from '#lib/cli/process/serve.ts'
import { multiplyLimits, NETWORK_LEDGER_LIMITS, startDevnet } from '#lib/devnet/devnet.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { prepareChain } from './chain.ts'
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts'
import { cpuMsOf } from './load.ts'
import type { PlainJob, PlainReport } from './plain-loop.ts'

/** A ledger in this process, the service in another, and an RPC between them that counts. */
export interface Stage {
  network: TestNetwork
  proxy: CountingProxy
  /** the origin of the service */
  base: string
  payee: Holder
  /** Chains of prepared transfers, one for each of `payers` new payers. Nothing is paid, so the payers need no balance. */
  prepare(payers: number, transfers: number): Promise<{ payer: Holder; chain: string[] }[]>
  /** CPU time of the service's process so far, in milliseconds */
  serviceCpuMs(): number
  /** @param warmingUp how many transactions of each chain come before the measurement */
  runPlainLoop(chains: string[][], warmingUp?: number): Promise<PlainReport>
  close(): Promise<void>
}

const PORT = 3900

/** @param variables on top of the service's configuration */
export async function setStage(variables: Record<string, string> = {}): Promise<Stage> {
  const devnet = await startDevnet({
    directory: null,
    port: 0,
    closeMs: 1000,
    // Measures the service's cost, not the room in a ledger: see ./ledger.ts.
    limits: multiplyLimits(NETWORK_LEDGER_LIMITS, 100),
    passphrase: 'Standalone Network ; February 2017',
  })
  const proxy = await startCountingProxy(devnet.rpcUrl)
  const network = await openTestNetwork(`${devnet.url}/deployment.json`)
  const [sponsor, plainSponsor] = [Keypair.random(), Keypair.random()]
  for (const { friendbotUrl, key } of [sponsor, plainSponsor].map((key) => ({ ...network, key }))) {
    await fetch(`${friendbotUrl}?addr=${key.publicKey()}`)
  }
  const base = `http://localhost:${PORT}`
  const directory = await mkdtemp(join(tmpdir(), 'payroll-bench-'))
  const serving = await startServing(base, {
    PORT: String(PORT),
    PUBLIC_URL: base,
    DATA_DIR: directory,
    STELLAR_RPC_URL: proxy.url,
    CONFIDENTIAL_TOKEN: network.token,
    SPONSOR_SEED: sponsor.secret(),
    ...variables,
  })
  const payee = await enrol(network)
  return {
    network,
    proxy,
    base,
    payee,
    prepare: async (payers, transfers) => {
      const holders = await inGroups(payers, 20, () => enrol(network))
      return await Promise.all(
        holders.map(async (payer) => {
          const chain = await prepareChain(network, payer, payee.signer.publicKey(), transfers)
          return { payer, chain }
        }),
      )
    },
    serviceCpuMs: () => cpuMsOf(serving.pid),
    runPlainLoop: (chains, warmingUp = 0) =>
      runPlainLoop({
        rpcUrl: proxy.url,
        passphrase: network.passphrase,
        sponsorSeed: plainSponsor.secret(),
        chains,
        warmingUp,
      }),
    close: async () => {
      await serving.stop()
      await proxy.close()
      await devnet.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function inGroups<Item>(count: number, size: number, make: () => Promise<Item>): Promise<Item[]> {
  const made: Item[] = []
  while (made.length < count) {
    made.push(...(await Promise.all(Array.from({ length: Math.min(size, count - made.length) }, make))))
  }
  return made
}

function runPlainLoop(job: PlainJob): Promise<PlainReport> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL('./plain-loop.ts', import.meta.url))
    child.once('message', (report) => resolve(report as PlainReport))
    child.once('exit', (code) => reject(new Error(`the plain loop ended with code ${code}`)))
    child.send(job)
  })
}
