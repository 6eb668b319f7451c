import type { ReactNode } from 'react'

type Tone = 'good' | 'busy' | 'late' | 'bad' | 'idle' | 'off'

/** The tone and the label of each status, which mean the same for every kind of record. */
const SIGNS = {
  open: ['busy', 'Open'],
  overdue: ['late', 'Overdue'],
  succeeded: ['good', 'Succeeded'],
  failed: ['bad', 'Failed'],
  expired: ['bad', 'Expired'],
  unknown: ['bad', 'Unknown'],
  draft: ['idle', 'Draft'],
  ready: ['idle', 'Ready'],
  started: ['busy', 'Started'],
  stalled: ['late', 'Stalled'],
  completed: ['good', 'Completed'],
  pending: ['busy', 'Pending'],
  paid: ['good', 'Paid'],
  canceled: ['off', 'Canceled'],
  invited: ['idle', 'Invited'],
  onboarding: ['busy', 'Onboarding'],
  /** of a contractor, who is ready to be paid */
  payable: ['good', 'Ready'],
  inactive: ['off', 'Inactive'],
  running: ['busy', 'Running'],
  waiting: ['idle', 'Waiting'],
  preparing: ['busy', 'Building'],
  sent: ['busy', 'Open'],
  free: ['idle', 'Free'],
  building: ['busy', 'Building'],
  sending: ['busy', 'Paying'],
  problem: ['bad', 'Problem'],
  halted: ['bad', 'Payments stopped'],
  paused: ['off', 'Paused'],
  retired: ['off', 'Retired'],
  stopped: ['off', 'Not running'],
} as const satisfies Record<string, readonly [Tone, string]>
export type StatusName = keyof typeof SIGNS

/** The label of a status, which CSV files also use. */
export const statusWord = (is: StatusName): string => SIGNS[is][1]

/** A status as text, with a distinct shape and colour. */
export const Status = ({ is }: { is: StatusName }) => <Sign tone={SIGNS[is][0]}>{statusWord(is)}</Sign>

const TEXT: Record<Tone, string> = {
  good: 'text-good',
  busy: 'text-busy',
  late: 'text-busy',
  bad: 'text-bad',
  idle: 'text-soft',
  off: 'text-faint',
}

/** Text with the shape and colour of a tone. */
export function Sign({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={`whitespace-nowrap ${TEXT[tone]}`}>
      <Shape tone={tone} />
      {children}
    </span>
  )
}

/** A tick, half moon, warning triangle, cross, ring or struck ring, so that tones differ even without colour. */
export const Shape = ({ tone }: { tone: Tone }) => (
  <svg
    width="13"
    height="13"
    viewBox="0 0 13 13"
    fill="none"
    strokeWidth="1.5"
    aria-hidden="true"
    className="mr-1.5 inline align-[-0.1em]"
  >
    {SHAPES[tone]}
  </svg>
)

const SHAPES: Record<Tone, ReactNode> = {
  good: (
    <>
      <circle cx="6.5" cy="6.5" r="6" fill="var(--good-fill)" />
      <path d="m3.8 6.7 1.9 1.9 3.6-4" stroke="var(--surface)" strokeLinecap="round" strokeLinejoin="round" />
    </>
  ),
  busy: (
    <>
      <circle cx="6.5" cy="6.5" r="5.25" stroke="var(--busy-fill)" />
      <path d="M6.5 3a3.5 3.5 0 0 1 0 7Z" fill="var(--busy-fill)" />
    </>
  ),
  late: (
    <>
      <g fill="var(--busy-fill)" stroke="var(--busy-fill)" strokeWidth="1.4" strokeLinejoin="round">
        <path d="M6.5 1.4 12 11.5H1Z" />
      </g>
      <path d="M6.5 4.8v3.1m0 2v.1" stroke="var(--surface)" strokeLinecap="round" />
    </>
  ),
  bad: (
    <>
      <rect x="0.5" y="0.5" width="12" height="12" rx="3" fill="var(--bad-fill)" />
      <path d="m4.2 4.2 4.6 4.6m0-4.6L4.2 8.8" stroke="var(--surface)" strokeLinecap="round" />
    </>
  ),
  idle: <circle cx="6.5" cy="6.5" r="5.25" stroke="var(--faint)" />,
  off: (
    <g stroke="var(--faint)">
      <circle cx="6.5" cy="6.5" r="5.25" />
      <path d="m3 10 7-7" />
    </g>
  ),
}
