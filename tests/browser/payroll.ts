import { setTimeout } from 'node:timers/promises'
import { type Keypair, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { endow, enrol, openTestNetwork, type TestNetwork } from '#lib/cli/client/participants.ts'
import { signInWithWallet } from '#lib/cli/client/wallet-session.ts'
import { devnetKeys } from '#lib/devnet/devnet.ts'
import { readLedgerRange } from '#lib/stellar/ledger-range.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { CallOptions } from '#lib/wallet/transaction.ts'
import type { RunningProgram } from './running-program.ts'

const ID = z.object({ id: z.string() })

/** A contractor with a registered account. */
export interface Payee {
  id: string
  name: string
  address: string
}

/** An employer who uses a running service over HTTP, like a frontend. */
export interface Payroll {
  employer: Holder
  network: TestNetwork
  /** Sends a request as the employer; resolves to status and body. */
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>
  /** Creates contractors with these names, each with a separate account on the ledger. */
  hire(...names: string[]): Promise<Payee[]>
  /** Creates a locked batch with a payout to each; resolves to its id. */
  prepare(name: string, payees: readonly Payee[]): Promise<string>
  /** Pays one contractor and waits until it is settled; resolves to the hash. */
  pay(payee: Payee): Promise<string>
  /**
   * Posts a transfer whose sequence number another transaction of the employer uses first, so that the network rejects
   * it and it expires. Resolves to the status.
   */
  fail(payee: Payee): Promise<number>
  /** Posts a transfer with a maxTime beyond the sponsor's limit; resolves to the status. */
  overreach(payee: Payee): Promise<number>
}

export async function openPayroll({ base, deploymentUrl }: RunningProgram): Promise<Payroll> {
  const network = await openTestNetwork(deploymentUrl)
  const employer = await enrol(network)
  const issuer: Keypair = devnetKeys(network.passphrase).issuer
  let opening: Opening = await endow(network, issuer, employer, 100_000_0000000n)
  const session = await signInWithWallet(base, employer.signer)

  const ask: Payroll['ask'] = async (method, path, body) => {
    const response = await fetch(`${base}/api${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${session}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
  const make = async (path: string, body: unknown) => ID.parse((await ask('POST', path, body)).body).id
  const build = (to: string, options: CallOptions = {}) =>
    buildTransfer(network, employer, { to, amount: 1_0000000n, opening }, options)

  /** A transaction that only uses the employer's next sequence number. */
  const spendSequence = async () => {
    const source = await network.rpc.getAccount(employer.signer.publicKey())
    const transaction = new TransactionBuilder(source, { fee: '1000', networkPassphrase: network.passphrase })
      .addOperation(Operation.bumpSequence({ bumpTo: '0' }))
      .setTimeout(60)
      .build()
    transaction.sign(employer.signer)
    return transaction
  }
  const nextLedger = async () => {
    const { latestLedger } = await readLedgerRange(network.rpc)
    while ((await readLedgerRange(network.rpc)).latestLedger === latestLedger) await setTimeout(20)
  }

  return {
    employer,
    network,
    ask,
    hire: (...names) =>
      Promise.all(
        names.map(async (name) => {
          const address = (await enrol(network)).signer.publicKey()
          return { id: await make('/contractors', { name, address }), name, address }
        }),
      ),
    prepare: async (name, payees) => {
      const id = await make('/batches', { name })
      const instructions = payees.map((payee) => ({ contractorId: payee.id, encryptedAmount: 'sealed' }))
      await ask('POST', `/batches/${id}/instructions`, { instructions })
      await ask('POST', `/batches/${id}/ready`)
      return id
    },
    pay: async ({ address }) => {
      const { signedXdr, next } = await build(address)
      const { status, body } = await ask('POST', '/transfer', { signedXDR: signedXdr })
      if (status !== 200) throw new Error(`the service responded with ${status}`)
      opening = next
      return z.object({ hash: z.string() }).parse(body).hash
    },
    fail: async ({ address }) => {
      // Both must arrive between two ledgers: if a ledger closes first, the sponsor sees the rival and responds 422.
      for (;;) {
        const { signedXdr } = await build(address, { seconds: 120 })
        const rival = await spendSequence()
        await nextLedger()
        await network.rpc.sendTransaction(rival)
        const { status } = await ask('POST', '/transfer', { signedXDR: signedXdr })
        if (status !== 422) return status
      }
    },
    overreach: async ({ address }) => {
      const { signedXdr } = await build(address, { seconds: 600 })
      return (await ask('POST', '/transfer', { signedXDR: signedXdr })).status
    },
  }
}
