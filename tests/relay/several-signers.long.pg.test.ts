import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, onTestFinished, test } from 'vitest'
import { publicHalf } from '#lib/config/relay-key.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { shareAccount } from '../support/multisig.ts'
import { openRelayService } from './relay-service.ts'
import { openRunFixture } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

const run = promisify(execFile)

/** The shell block of docs/runs.md, "Several signers": up to the approval, and what follows once the run has ended. */
function readBlock(): [string, string] {
  const [, section = ''] = readFileSync('docs/runs.md', 'utf8').split(/^## Several signers\n/m)
  const [, block = ''] = /^```sh\n(wallet\(\)[\s\S]*?)```/m.exec(section) ?? []
  const [definition = '', ...lines] = block.split('\n')
  expect(definition).toBe('wallet() { npm run -s wallet -- "$@"; }')
  const [before = '', after = ''] = lines.join('\n').split('# afterwards')
  return [before, `#${after}`]
}

test('the commands of the guide sign in, delegate and approve a run with two of three signers', async () => {
  const service = await openRelayService({ channels: 1, http: true })
  onTestFinished(service.close)
  const fixture = openRunFixture(service)
  await fixture.announce()
  const directory = mkdtempSync(join(tmpdir(), 'payroll-signers-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))

  const employer = await fixture.employer()
  const batch = await fixture.batchOf(employer, [1n])
  const [second, third] = [Keypair.random(), Keypair.random()]
  const [payee] = batch.payees
  const relay = { publicKey: publicHalf(service.key), channels: [fixture.channel] }
  writeFileSync(join(directory, 'relay.json'), JSON.stringify(relay))
  writeFileSync(join(directory, 'may.csv'), `${batch.first.contractorId},20,${payee?.address}\n`)
  writeFileSync(join(directory, 'own-list.csv'), `${payee?.address},20\n`)

  const where = `--service ${service.base} --network ${service.ledger.devnet.url}/deployment.json`
  const node = (program: string) => `(cd ${resolve('.')} && node lib/cli/${program}.ts "$@")`
  // A relative file is one of the caller's folder.
  const absolute = (text: string) =>
    text.replaceAll(/(may\.csv|own-list\.csv|amounts\.jwe|evidence\.json)(?=$|\s)/gm, `${directory}/$1`)
  const definitions = `
    wallet() { set -- "$@" ${where} --relay-document ${directory}/relay.json --notes ${directory}/notes.txt; ${node('wallet')}; }
    disclosure() { set -- "$@" --network ${service.ledger.devnet.url}/deployment.json; ${node('disclosure')}; }
    JSON='Content-Type: application/json' AUTH="Authorization: Bearer ${employer.session}"`
  const variables = {
    EMPLOYER: employer.signer.secret(),
    SECOND: second.secret(),
    BATCH: batch.id,
    SPENDER: fixture.channel,
  }
  const env = { ...CHILD_VARIABLES, ...variables, DEVNET_PROOFS: 'stand-in' } as unknown as NodeJS.ProcessEnv
  const perform = async (block: string) => {
    // The ledger of the test closes ten times a second.
    const text = absolute(block)
      .replace('--ledgers 2000', '--ledgers 20000')
      .replaceAll('npm run -s disclosure --', 'disclosure')
      .replaceAll('localhost:3000', service.base)
    return await run('bash', ['-euo', 'pipefail', '-c', `${definitions}\n${text}`], { cwd: directory, env })
  }
  // A seal of the employer's own, as in the guide's steps.
  const seal = `wallet seal --secret $EMPLOYER --relay '${JSON.stringify(relay.publicKey)}' --batch $BATCH --contractor ${batch.first.contractorId} --spender $SPENDER --amount 20`
  const seals = `{"seals":[{"payoutId":"${batch.first.id}","encryptedAmount":"'$SEALED'"}]}`
  await perform(
    `SEALED=$(${seal}); curl -sf ${service.base}/api/batches/$BATCH/seals -H "$AUTH" -H "$JSON" -d '${seals}'`,
  )
  await shareAccount(service.ledger.network, employer, [second, third], 2)

  await using _relay = await service.relay({ times: { ...SHORT_TIMES, lag: 0.2 } })
  const [before, after] = readBlock()
  const { stdout, stderr } = await perform(`${before}\necho "SESSION=$SESSION"`)
  expect(stdout).toContain('"approval":{"weight":1,"needed":2')
  expect(stdout).toContain('approved: the run has started')
  expect(stderr).toContain(`a delegation from ${employer.address} to ${fixture.channel}, a channel of the relay`)
  await fixture.ended(batch)
  const [, session = ''] = /SESSION=(\S+)/.exec(stdout) ?? []
  const checked = await perform(`SESSION=${session}\n${after}`)
  expect(checked.stdout).toContain('signed with weight 2 of 2 by')
  expect(checked.stdout).toContain(`1 of 1 payouts paid`)
  expect(checked.stdout).toContain(`to ${payee?.address}`)

  // A signer does not sign a sign-in as itself, nor what it cannot describe.
  const own = '$(wallet address --secret $SECOND)'
  const challenge = `CHALLENGE=$(wallet challenge --secret $EMPLOYER --account ${own})`
  const transfer = `wallet transfer --secret $EMPLOYER --to ${payee?.address} --amount 1`
  for (const attack of [
    `${challenge}; wallet sign --secret $SECOND --account ${own} --signed-xdr $CHALLENGE`,
    `XDR=$(${transfer}); wallet sign --secret $SECOND --signed-xdr $XDR`,
    'wallet sign --secret $SECOND --signed-xdr AAAA',
  ]) {
    await expect(perform(attack)).rejects.toMatchObject({ code: 1 })
  }
})
