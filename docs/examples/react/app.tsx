import { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, take } from 'confidential-payroll-sdk'
import { openProver } from 'confidential-payroll-sdk/prover'
import * as wallet from 'confidential-payroll-sdk/wallet'
import { useActionState, useState } from 'react'
import { createRoot } from 'react-dom/client'

const query = new URLSearchParams(location.search)
const service = query.get('service') ?? 'http://localhost:3000'
const network = query.get('network') ?? 'http://localhost:8000/deployment.json'

const proving = openProver()

/** Signs in. The first time, it also registers the account with the token, and requests test USDC. */
async function connect() {
  const document = await wallet.fetchDeployment(network)
  const deployment = wallet.openDeployment(document, await proving)
  // A throwaway key. For a wallet: openSep43Signer(await import('@stellar/freighter-api'), document.passphrase)
  localStorage.secret ??= Keypair.random().secret()
  const signer = wallet.keypairSigner(Keypair.fromSecret(localStorage.secret))
  let session = ''
  const renew = () => wallet.signIn(client, signer).then((token) => (session = token))
  const client = createPayrollClient({ baseUrl: `${service}/api`, session: () => session, renew })
  const holder = await wallet.openWallet(signer, deployment.token)
  if (!(await wallet.readConfidentialAccount(deployment.rpc, deployment.token, holder.address))) {
    await deployment.rpc.fundAddress(holder.address)
    const { signedXdr } = await wallet.buildRegister(deployment, holder, { auditorId: document.auditor.id })
    await take(client.POST('/calls', { body: { signedXDR: signedXdr } }))
  }
  const { spendable, receiving } = await wallet.syncBalance(deployment, holder)
  if (spendable.value + receiving.value === 0n) await client.POST('/funding/faucet').catch(console.log)
  return { client, deployment, holder, notes: wallet.openNotes(holder, wallet.storedNotes(localStorage)) }
}
type Employer = Awaited<ReturnType<typeof connect>>

/** Pays lines of a name, an address and an amount, one tab at a time. After an interruption, it continues the same batch. */
async function pay(employer: Employer, list: string, progress: (progress: wallet.BatchProgress) => void) {
  const { client, notes } = employer
  const rows = list
    .trim()
    .split(/\s*\n\s*/)
    .map((line) => {
      const [name, address, amount, ...more] = line.split(',').map((cell) => cell.trim())
      if (!name || !address || !amount || more.length > 0) throw new Error(`no name, address and amount: ${line}`)
      return { name, address, contractor: address, amount: wallet.parseAmount(amount) }
    })
  const body = { rows: rows.map(({ name, address }) => ({ name, address })) }
  const { errors } = await take(client.POST('/contractors/bulk', { body }))
  const refused = errors.find(({ code }) => code !== 'address-taken')
  if (refused) throw new Error(`line ${refused.row}: ${refused.reason}`)
  const payees = await wallet.matchPayees(client, rows, notes)
  localStorage.batch ??= (await take(client.POST('/batches', { body: { name: new Date().toISOString() } }))).id
  await wallet.payBatch({ ...employer, batch: localStorage.batch, payees, progress, say: console.log })
  for (const done of ['batch', 'list']) localStorage.removeItem(done)
}

function Payroll() {
  const [progress, setProgress] = useState<wallet.BatchProgress>()
  const [lines, setLines] = useState<wallet.StatementLine[]>([])
  const [outcome, submit, isPaying] = useActionState(async (_: string, form: FormData) => {
    let paid = ''
    localStorage.list = form.get('list')
    try {
      const employer = await connect()
      await navigator.locks.request('payroll', () => pay(employer, localStorage.list, setProgress))
      paid = 'Everyone is paid.'
      setLines((await wallet.readStatement(employer.deployment, employer.holder)).lines)
      return paid
    } catch (error) {
      return `${paid} ${error}`
    }
  }, '')
  return (
    <main>
      <h1>Payroll</h1>
      <form action={submit}>
        <label>
          Name, address and amount, one payee a line
          <textarea name="list" rows={6} required defaultValue={localStorage.list} />
        </label>
        <button type="submit" disabled={isPaying}>
          {localStorage.batch ? 'Continue' : 'Pay'}
        </button>
      </form>
      {isPaying && <progress aria-label="Paid" value={progress?.done ?? 0} max={progress?.of ?? 1} />}
      <p role="status">{isPaying ? `${progress?.step ?? 'connecting'}…` : outcome}</p>
      <ul aria-label="Statement">
        {lines.map(({ transaction, date, direction, counterparty, amount }) => (
          <li key={transaction}>
            {[date.slice(0, 10), direction, amount && wallet.formatAmount(amount), counterparty].join(' ')}
          </li>
        ))}
      </ul>
    </main>
  )
}

createRoot(document.querySelector('#root') as Element).render(<Payroll />)
