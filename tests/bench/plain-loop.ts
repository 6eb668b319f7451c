import { Keypair, rpc, TransactionBuilder } from '@stellar/stellar-sdk'

/** The work of a simple sponsor with only the SDK: decode, wrap, sign, submit, and poll once a second. */
async function plainTransfer(
  server: rpc.Server,
  passphrase: string,
  sponsor: Keypair,
  signedXdr: string,
): Promise<number> {
  const inner = TransactionBuilder.fromXdr(signedXdr, passphrase)
  if ('innerTransaction' in inner) throw new Error('a fee bump already')
  const bump = TransactionBuilder.buildFeeBumpTransaction(sponsor, '100', inner, passphrase)
  bump.sign(sponsor)
  const sent = await server.sendTransaction(bump)
  if (sent.status !== 'PENDING') throw new Error(`the network answered ${sent.status}`)
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const found = await server.getTransaction(sent.hash)
    if (found.status === 'SUCCESS') return found.ledger
    if (found.status === 'FAILED') throw new Error('it failed')
  }
}

/** Runs as a separate process to measure its CPU time alone: jobs arrive as one message, and results leave as another. */
export interface PlainJob {
  rpcUrl: string
  passphrase: string
  sponsorSeed: string
  /** chains of signed transactions: each in order, all in parallel */
  chains: string[][]
  /** how many transactions of each chain are submitted before the CPU time is measured */
  warmingUp: number
}

export interface PlainReport {
  /** of the transactions after those that warm it up */
  ledgers: number[][]
  cpuMs: number
}

if (process.send) {
  process.once('message', async (job: PlainJob) => {
    const server = new rpc.Server(job.rpcUrl, { allowHttp: true })
    const sponsor = Keypair.fromSecret(job.sponsorSeed)
    const submitAll = (chains: string[][]) =>
      Promise.all(
        chains.map(async (chain) => {
          const found: number[] = []
          for (const signedXdr of chain) found.push(await plainTransfer(server, job.passphrase, sponsor, signedXdr))
          return found
        }),
      )
    await submitAll(job.chains.map((chain) => chain.slice(0, job.warmingUp)))
    const start = process.cpuUsage()
    const ledgers = await submitAll(job.chains.map((chain) => chain.slice(job.warmingUp)))
    const { user, system } = process.cpuUsage(start)
    process.send?.({ ledgers, cpuMs: (user + system) / 1000 } satisfies PlainReport)
    process.disconnect()
  })
}
