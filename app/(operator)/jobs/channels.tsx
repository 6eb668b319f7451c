import Link from 'next/link'
import {
  type ChannelLine,
  channelState,
  PROBLEM_EXPLANATIONS,
  RECONCILE_EXPLANATIONS,
} from '#lib/dashboard/channels.ts'
import { ActionForm } from '../action-form.tsx'
import { Moment } from '../figures.tsx'
import { Address, TransactionHash } from '../hash.tsx'
import { recordPath } from '../record-links.tsx'
import { Status } from '../status.tsx'

interface ChannelsProps {
  channels: readonly ChannelLine[]
  network: string
  now: Date
}

/** The channel accounts that pay in parallel, with the activity of each, or why it is idle. */
export function Channels({ channels, network, now }: ChannelsProps) {
  return (
    <section aria-labelledby="channels" className="mb-8">
      <h2 id="channels" className="mb-3 font-semibold">
        Channels
      </h2>
      <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
        {channels.map((channel) => (
          <li
            key={channel.address}
            id={channel.address}
            className="scroll-mt-20 rounded-lg border border-line bg-surface px-4 py-3 shadow-card target:border-accent"
          >
            <div className="flex items-center justify-between gap-3">
              <Address value={channel.address} network={network} />
              <Status of="channel" is={channelState(channel)} />
            </div>
            <div className="mt-1 text-xs text-faint">
              {channel.problem && (
                <>
                  <p className="text-bad">{PROBLEM_EXPLANATIONS[channel.problem].meaning}</p>
                  <p className="text-soft">{PROBLEM_EXPLANATIONS[channel.problem].remedy()}</p>
                </>
              )}
              {channel.reconcileProblem && (
                <p className="text-bad">
                  It keeps payments stopped: {RECONCILE_EXPLANATIONS[channel.reconcileProblem]}.
                </p>
              )}
              {channel.job && channel.position !== null && (
                <p>
                  transfer {channel.position + 1} of{' '}
                  <Link href={recordPath('job', channel.job)} prefetch={false} className="underline">
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
              {!channel.isRetired && (
                <div className="flex flex-wrap gap-x-3">
                  <ActionForm
                    action={channel.isPaused ? 'resume-channel' : 'pause-channel'}
                    subject={channel.address}
                    back="/jobs"
                    label={channel.isPaused ? 'Resume' : 'Pause'}
                    why="Why, for the audit log"
                  />
                  {channel.isPaused && (
                    <ActionForm
                      action="retire-channel"
                      subject={channel.address}
                      back="/jobs"
                      label="Retire for ever"
                      why="Why it never pays again, for the audit log"
                    />
                  )}
                </div>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
