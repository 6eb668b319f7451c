import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium, expect } from '@playwright/test'
import { Keypair, Networks } from '@stellar/stellar-sdk'
import { decodeJwt } from 'jose'
import { freePort } from '../support/port.ts'
import { findChromium } from './chromium.ts'
import { test } from './fixtures.ts'
import { runProgram } from './running-program.ts'

// The Stellar foundation's wallet SDK in a page of another origin: it sends headers of its own with every request.

/** The SDK takes a home domain without a port, and plain HTTP on testnet only. */
const DOMAIN = 'payroll.test'
const BUNDLE = 'node_modules/@stellar/typescript-wallet-sdk/lib/bundle_browser.js'

interface WalletSdk {
  Wallet: { TestNet(): { anchor(options: object): { sep10(): Promise<Sep10> } } }
  SigningKeypair: { fromSecret(secret: string): unknown }
}
interface Sep10 {
  authenticate(options: object): Promise<{ token: string }>
}

test('signs in from a page of another origin with the wallet SDK', { tag: '@long' }, async () => {
  test.setTimeout(120_000)
  const port = await freePort()
  const program = await runProgram({ PUBLIC_URL: `http://${DOMAIN}`, DEVNET_PASSPHRASE: Networks.TESTNET }, port)
  const page = createServer((_, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<!doctype html><script>${readFileSync(BUNDLE, 'utf8').replaceAll('</script', '<\\/script')}</script>`)
  }).listen(0, '127.0.0.1')
  const browser = await chromium.launch({
    executablePath: findChromium(),
    args: ['--no-sandbox', `--host-resolver-rules=MAP ${DOMAIN}:80 127.0.0.1:${port}`],
  })
  try {
    const tab = await browser.newPage()
    const requested = new Set<string>()
    tab.on('request', async (request) => {
      for (const name of Object.keys(await request.allHeaders())) requested.add(name)
    })
    await tab.goto(`http://127.0.0.1:${(page.address() as AddressInfo).port}`)
    const wallet = Keypair.random()
    const token = await tab.evaluate(
      async ({ domain, secret }) => {
        const { Wallet, SigningKeypair } = (globalThis as unknown as { WalletSDK: WalletSdk }).WalletSDK
        const anchor = Wallet.TestNet().anchor({ homeDomain: domain, allowHttp: true })
        const auth = await anchor.sep10()
        return (await auth.authenticate({ accountKp: SigningKeypair.fromSecret(secret) })).token
      },
      { domain: DOMAIN, secret: wallet.secret() },
    )
    expect(decodeJwt(token)).toMatchObject({ kind: 'ledger', sub: wallet.publicKey() })
    expect([...requested]).toEqual(expect.arrayContaining(['x-client-name', 'x-client-version']))
  } finally {
    await browser.close()
    page.close()
    await program.stop()
  }
})
