import type { Page } from '@playwright/test'
import { type Keypair, TransactionBuilder } from '@stellar/stellar-sdk'

/**
 * Responds like Freighter's content script, by window messages. The key stays in this process.
 * @param refuses the user rejects the request
 */
export async function installFreighter(page: Page, key: Keypair, { refuses = false } = {}): Promise<void> {
  await page.exposeFunction('signAsFreighter', (xdr: string, passphrase: string) => {
    const transaction = TransactionBuilder.fromXdr(xdr, passphrase)
    transaction.sign(key)
    return transaction.toXdr()
  })
  await page.addInitScript(
    ([address, isRefusing]) => {
      window.addEventListener('message', async ({ data, source }) => {
        if (source !== window || data?.source !== 'FREIGHTER_EXTERNAL_MSG_REQUEST') return
        const answer = (fields: object) =>
          window.postMessage(
            { source: 'FREIGHTER_EXTERNAL_MSG_RESPONSE', messagedId: data.messageId, ...fields },
            window.location.origin,
          )
        const sign = Reflect.get(window, 'signAsFreighter') as (xdr: string, passphrase: string) => Promise<string>
        if (data.type === 'REQUEST_CONNECTION_STATUS') answer({ isConnected: true })
        else if (data.type === 'REQUEST_ACCESS') answer({ publicKey: address })
        else if (data.type === 'SUBMIT_TRANSACTION' && isRefusing) {
          answer({ apiError: { code: -4, message: 'The user rejected this request.' } })
        } else if (data.type === 'SUBMIT_TRANSACTION') {
          answer({
            signedTransaction: await sign(data.transactionXdr, data.networkPassphrase),
            signerAddress: address,
          })
        }
      })
    },
    [key.publicKey(), refuses] as const,
  )
}
