import type { Settings } from '#lib/server/settings.ts'
import { Section } from '../section.tsx'

/** A feature that is off, and the variables that turn it on. */
interface Gap {
  loss: string
  variables: string[]
}

/** Optional features that a missing key disables. */
export function NotConfigured({ settings }: { settings: Settings }) {
  const gaps = gapsOf(settings)
  if (gaps.length === 0) return null
  return (
    <Section id="not-configured" title="Not configured" className="mt-8">
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
    </Section>
  )
}

function gapsOf(settings: Settings): Gap[] {
  const { token, provider, faucet, batch, mail, cronSecret, metricsToken } = settings
  const tokenToo = token ? [] : ['CONFIDENTIAL_TOKEN']
  const gap = (is: boolean, loss: string, ...variables: string[]) => (is ? [{ loss, variables }] : [])
  return [
    ...gap(!provider, 'Users can sign in with a wallet, but not by email.', 'IDP_ISSUER', 'IDP_AUDIENCE'),
    ...gap(!faucet, 'The faucet is off.', 'FAUCET_SEED', ...tokenToo),
    ...gap(!batch, 'Batch jobs for relays are refused.', 'BATCH_ENABLED', 'RELAY_PUBLIC_KEY', ...tokenToo),
    ...gap(!mail, 'Invites are not mailed: employers send the links themselves.', 'SMTP_URL', 'MAIL_FROM'),
    ...gap(!cronSecret, '/api/cron/sweep is closed: no scheduler can run the chores.', 'CRON_SECRET'),
    ...gap(!metricsToken, '/api/metrics is closed: no metrics can be read.', 'METRICS_TOKEN'),
  ]
}
