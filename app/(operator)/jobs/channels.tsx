import {
  type ChannelLine,
  channelState,
  PROBLEM_EXPLANATIONS,
  RECONCILE_EXPLANATIONS,
} from '#lib/dashboard/channels.ts'
import { ActionForm } from '../action-form.tsx'
import { Moment, type View } from '../figures.tsx'
import { Address, TransactionHash } from '../hash.tsx'
import { PageLink, recordPath } from '../record-links.tsx'
import { Section } from '../section.tsx'
import { Status } from '../status.tsx'

/** The channel accounts that pay in parallel, with the activity of each, or why it is idle. */
export function Channels({ channels, ...view }: View & { channels: readonly ChannelLine[] }) {
  return (
    <Section id="channels" title="Channels">
      <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
        {channels.map((channel) => (
          <li
            key={channel.address}
            id={channel.address}
            className="scroll-mt-20 rounded-lg border border-line bg-surface px-4 py-3 shadow-card target:border-accent"
          >
            <div className="flex items-center justify-between gap-3">
              <Address value={channel.address} network={view.network} />
              <Status is={channelState(channel)} />
            </div>
            <div className="mt-1 text-xs text-faint">
              <Activity channel={channel} {...view} />
              {!channel.isRetired && <Actions channel={channel} />}
            </div>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Activity({ channel, network, now }: View & { channel: ChannelLine }) {
  const { problem, reconcileProblem, job, position, isPaused, seenAt, receivedAt, receivedHash } = channel
  return (
    <>
      {problem && (
        <>
          <p className="text-bad">{PROBLEM_EXPLANATIONS[problem].meaning}</p>
          <p className="text-soft">{PROBLEM_EXPLANATIONS[problem].remedy()}</p>
        </>
      )}
      {reconcileProblem && (
        <p className="text-bad">It keeps payments stopped: {RECONCILE_EXPLANATIONS[reconcileProblem]}.</p>
      )}
      {job && position !== null && (
        <p>
          transfer {position + 1} of <PageLink href={recordPath('job', job)} name="its job" className="underline" />
        </p>
      )}
      {isPaused && job && <p>paused: it ends this transfer and begins no other</p>}
      <p>
        last seen <Moment at={seenAt} now={now} />
      </p>
      {receivedAt && receivedHash && (
        <p>
          last received <Moment at={receivedAt} now={now} /> <TransactionHash value={receivedHash} network={network} />
        </p>
      )}
    </>
  )
}

function Actions({ channel: { address, isPaused } }: { channel: ChannelLine }) {
  const of = { subject: address, back: '/jobs' }
  return (
    <div className="flex flex-wrap gap-x-3">
      {isPaused ? (
        <>
          <ActionForm {...of} action="resume-channel" label="Resume" why="Why, for the audit log" />
          <ActionForm
            {...of}
            action="retire-channel"
            label="Retire for ever"
            why="Why it never pays again, for the audit log"
          />
        </>
      ) : (
        <ActionForm {...of} action="pause-channel" label="Pause" why="Why, for the audit log" />
      )}
    </div>
  )
}
