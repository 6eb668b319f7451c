import { composeOperator } from '#lib/auth/operator.ts'
import { keepKeys } from '#lib/config/embedded-keys.ts'
import { environment } from '#lib/config/environment.ts'
import { generateIdentityKey } from '#lib/devnet/devnet.ts'
import { loadProver, proverSettings } from '#lib/prover/node/loading.ts'
import { closingLines, runPayroll } from './demo/payroll.ts'
import { sayProgress } from './demo/relay-batch.ts'
import { runCommand } from './process/command.ts'
import { print, printMessage } from './process/output.ts'
import { answers, type Serving, startServing } from './process/serve.ts'

const say = (line = '') => print(line)

const USAGE = `npm run demo -- [--once]

Pays five contractors through the service on the embedded ledger. Uses a running service, or starts one.

  --once   stop the service afterwards`

async function demonstrate(isOnce: boolean): Promise<void> {
  const { PUBLIC_URL: base, DEVNET_PORT } = environment()
  let serving: Serving | undefined
  if (await answers(base)) say(`Using the service at ${base}`)
  else {
    say(`Starting the service at ${base} …`)
    serving = await startServing(base, {}, (line) => sayProgress(line, say))
  }
  const end = async () => await serving?.stop()
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
  const prover = await loadProver(proverSettings(environment()), say)
  const outcome = await runPayroll(
    { base, deploymentUrl: `http://localhost:${DEVNET_PORT}/deployment.json`, prover },
    say,
  )
    .catch(async (error) => {
      await end()
      throw error
    })
    .finally(() => prover.destroy?.())
  const hasFailed = outcome.failures.length > 0
  say()
  for (const line of closingLines(outcome)) (hasFailed ? printMessage : say)(line)
  if (hasFailed) process.exitCode = 1
  if (isOnce || hasFailed) return await end()
  if (!serving) return
  say(`\nThe service keeps running at ${base}/api (try ${base}/api/health). Press Ctrl-C to stop it.`)
  say(`The dashboard is at ${base}/overview, its password is ${await dashboardPassword()}`)
}

/** The source of the password: the variable that sets it, or the password derived from the embedded keys. */
async function dashboardPassword(): Promise<string> {
  const { OPERATOR_PASSWORD, DATABASE_URL, DATA_DIR } = environment()
  if (OPERATOR_PASSWORD) return 'that of OPERATOR_PASSWORD'
  if (DATABASE_URL) return 'none: set OPERATOR_PASSWORD'
  const { sessionSecret } = await keepKeys(DATA_DIR, generateIdentityKey)
  return composeOperator(sessionSecret, { password: undefined, embeddedSecret: sessionSecret })?.password ?? ''
}

await runCommand({
  usage: USAGE,
  options: { once: { type: 'boolean', default: false } },
  run: ({ once }) => demonstrate(once),
  explain: (error) => {
    printMessage(error)
    return 'The demo needs the embedded ledger. Check whether .env, or a running service, uses another one.'
  },
})
