import type { Settings } from '#lib/server/settings.ts'
import { paysForAnything } from '#lib/sponsor/policy.ts'

/** What is off, and the variables that turn it on. */
interface Gap {
  loss: string
  variables: string[]
}

/** A missing key turns its feature off: which those are, and what that costs. */
export function NotConfigured({ settings }: { settings: Settings }) {
  const gaps = gapsOf(settings)
  if (gaps.length === 0) return null
  return (
    <section aria-labelledby="not-configured" className="mt-8">
      <h2 id="not-configured" className="mb-2 font-semibold">
        Not configured
      </h2>
      <ul className="divide-y divide-line border-t border-line text-[0.8125rem]">
        {gaps.map(({ loss, variables }) => (
          <li key={loss} className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-0.5 py-2">
            <span className="text-soft">{loss}</span>
            <span className="text-faint">
              {'Set '}
              {variables.map((variable, index) => (
                <span key={variable}>
                  {index > 0 && ', '}
                  <code>{variable}</code>
                </span>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function gapsOf(settings: Settings): Gap[] {
  const { sponsor, token, provider, faucet, batch, mail, cronSecret, metricsToken } = settings
  const tokenToo = token ? [] : ['CONFIDENTIAL_TOKEN']
  const gap = (is: boolean, loss: string, ...variables: string[]) => (is ? [{ loss, variables }] : [])
  return [
    ...gap(!sponsor, 'No fees are paid: every transfer is turned away.', 'SPONSOR_SEED', ...tokenToo),
    ...gap(
      sponsor !== undefined && !paysForAnything(sponsor.rules),
      'Every transfer is refused: there is nothing to pay for.',
      token ? 'SPONSOR_CONTRACTS' : 'CONFIDENTIAL_TOKEN',
    ),
    ...gap(!token, 'No contractor becomes ready, and there is no vault.', 'CONFIDENTIAL_TOKEN'),
    ...gap(!provider, 'Nobody signs in by e-mail, only with a wallet.', 'IDP_ISSUER', 'IDP_AUDIENCE'),
    ...gap(!faucet, 'The faucet gives no test money.', 'FAUCET_SEED', ...tokenToo),
    ...gap(!batch, 'No batch jobs are taken for relays.', 'BATCH_ENABLED', 'RELAY_PUBLIC_KEY', ...tokenToo),
    ...gap(!mail, 'Invites are not mailed: employers pass the links on.', 'SMTP_URL', 'MAIL_FROM'),
    ...gap(!cronSecret, 'No scheduler may sweep: /api/cron/sweep is closed.', 'CRON_SECRET'),
    ...gap(!metricsToken, 'Nobody reads the metrics: /api/metrics is closed.', 'METRICS_TOKEN'),
  ]
}
