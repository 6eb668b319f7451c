import { Keypair } from '@stellar/stellar-sdk'
import { endow, enrol, openTestNetwork, type TestNetwork } from '#lib/cli/client/participants.ts'
import { type DevnetOptions, startDevnet } from '#lib/devnet/devnet.ts'
import { NOTHING, type Opening } from '#lib/wallet/commitment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'

/** A registered account with the opening of its confidential balance. */
export interface Payer extends Holder {
  address: string
  opening: Opening
}

/** An embedded ledger with a funded sponsor, behind an RPC proxy that can lie. */
export interface TestLedger {
  /** the RPC proxy that injects faults */
  url: string
  proxy: FaultProxy
  devnet: Awaited<ReturnType<typeof startDevnet>>
  /** direct access to the ledger, without the proxy */
  network: TestNetwork
  sponsor: Keypair
  issuer: Keypair
  /** Creates an account with this confidential balance, in base units. */
  endowPayer(balance?: bigint): Promise<Payer>
  close(): Promise<void>
}

/** @param options.closeMs milliseconds between ledgers; 0 closes one only when the test does */
export async function startTestLedger(
  options: {
    passphrase?: string | undefined
    closeMs?: number | undefined
    protocol?: 28 | 30 | undefined
    lag?: readonly number[] | undefined
    historyLedgers?: number | undefined
    loses?: DevnetOptions['loses']
  } = {},
): Promise<TestLedger> {
  const { passphrase = 'Standalone Network ; February 2017', closeMs = 200, lag = [0], loses } = options
  const lossy = loses && { loses }
  const history = options.historyLedgers === undefined ? {} : { historyLedgers: options.historyLedgers }
  const { protocol = 28 } = options
  const devnet = await startDevnet({
    ...{ directory: null, port: 0, closeMs, passphrase, lag, protocol },
    ...lossy,
    ...history,
  })
  const proxy = await startFaultProxy(devnet.rpcUrl)
  const network = await openTestNetwork(`${devnet.url}/deployment.json`)
  const issuer = Keypair.fromSecret(devnet.issuerSecret)
  const sponsor = Keypair.random()
  const funding = fetch(`${devnet.friendbotUrl}?addr=${sponsor.publicKey()}`)
  const closing = closeMs === 0 ? setInterval(devnet.closeLedger, 50) : undefined
  const funded = await funding.finally(() => clearInterval(closing))
  if (!funded.ok) throw new Error('the sponsor is not funded')
  /** Closes ledgers quickly while `work`, which needs several of them, is under way. */
  const hurry = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (closeMs === 0) return await work()
    const closing = setInterval(devnet.closeLedger, 20)
    return await work().finally(() => clearInterval(closing))
  }
  return {
    url: proxy.url,
    proxy,
    devnet,
    network,
    sponsor,
    issuer,
    endowPayer: (balance = 1_000_0000000n) =>
      hurry(async () => {
        const holder = await enrol(network)
        const opening = balance === 0n ? NOTHING : await endow(network, issuer, holder, balance)
        return { ...holder, opening }
      }),
    close: async () => {
      await proxy.close()
      await devnet.close()
    },
  }
}
