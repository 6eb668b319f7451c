import Link from 'next/link'
import { type ChannelLine, channelState, PROBLEM_EXPLANATIONS } from '#lib/dashboard/channels.ts'
import { ActionForm } from '../action-form.tsx'
import { Command } from '../copy-button.tsx'
import { Moment } from '../figures.tsx'
import { Address, TransactionHash } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { Shape, Status } from '../status.tsx'

interface ChannelsProps {
  channels: readonly ChannelLine[]
  network: string
  now: Date
}

/** The channel accounts that pay in parallel, with the activity of each, or why it is idle. */
export function Channels({ channels, network, now }: ChannelsProps) {
  const short = channels.reduce((most, channel) => Math.max(most, channel.short), 0)
  return (
    <section aria-labelledby="channels" className="mb-8">
      <h2 id="channels" className="mb-3 font-semibold">
        Channels
      </h2>
      {short > 0 && <Shortage />}
      <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
        {channels.map((channel) => (
          <li key={channel.address} className="rounded-lg border border-line bg-surface px-4 py-3 shadow-card">
            <div className="flex items-center justify-between gap-3">
              <Address value={channel.address} network={network} />
              <Status of="channel" is={channelState(channel)} />
            </div>
            <div className="mt-1 text-xs text-faint">
              {channel.problem && (
                <>
                  <p className="text-bad">{PROBLEM_EXPLANATIONS[channel.problem].meaning}</p>
                  <p className="text-soft">{PROBLEM_EXPLANATIONS[channel.problem].remedy}</p>
                </>
              )}
              {channel.short > 0 && (
                <p className="text-bad">
                  Balance too low for{' '}
                  {channel.short === 1 ? 'one failed transfer' : `${channel.short} failed transfers`}
                </p>
              )}
              {channel.job && channel.position !== null && (
                <p>
                  transfer {channel.position + 1} of{' '}
                  <Link href={addressOf('/jobs', { q: channel.job })} prefetch={false} className="underline">
                    its job
                  </Link>
                </p>
              )}
              {channel.isPaused && channel.job && <p>paused: it ends this transfer and begins no other</p>}
              <p>
                last seen <Moment at={channel.seenAt} now={now} />
              </p>
              {channel.receivedAt && channel.receivedHash && (
                <p>
                  last received <Moment at={channel.receivedAt} now={now} />{' '}
                  <TransactionHash hash={channel.receivedHash} network={network} />
                </p>
              )}
              <ActionForm
                action={channel.isPaused ? 'resume-channel' : 'pause-channel'}
                subject={channel.address}
                back="/jobs"
                label={channel.isPaused ? 'Resume' : 'Pause'}
                why="Why, for the audit log"
              />
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The remedy when transfers fail because no channel has enough. */
function Shortage() {
  return (
    <div className="mb-3 space-y-1 rounded-lg border border-line bg-surface px-4 py-3 shadow-card sm:px-5">
      <p className="font-medium">
        <Shape tone="late" />
        Channels need more USDC: a transfer failed because no channel had enough
      </p>
      <p className="text-soft">
        Amounts and balances are sealed. Only the employer knows how much is missing: ask what the failed transfer was
        to pay.
      </p>
      <p>
        <span className="text-faint">To do: </span>
        Send at least as much to one channel, as a confidential transfer to its address, from any account that has it:{' '}
        <Command text="npm run -s wallet -- transfer --secret S… --to G… --amount 100" /> signs one for{' '}
        <code className="text-[0.8125rem]">POST /api/transfer</code>. The employer then starts a new job with the
        transfers that failed.
      </p>
    </div>
  )
}
