import { RUN_PROBLEMS } from '#lib/relay/channel-state.ts'
import { type ChannelLine, PROBLEM_EXPLANATIONS } from './channels.ts'

/** A channel that may pay lines of a job or a run. */
export interface ChannelWait {
  address: string
  /** what it waits for, or lacks; empty if no line is left for it */
  waitsFor: string
}

/** The unfinished lines that a channel may pay. */
interface OpenLines {
  left: number
  /** lines that a relay looks at again later */
  doubted: number
  /** lines that cost more than the channel’s balance; 0 for a run, which is paid from escrow */
  short: number
}

/** What a channel waits for, or lacks, before it pays the next line of a job or a run. Undefined is one without a row. */
export function describeWait(
  { job, isRun }: { job: string; isRun: boolean },
  channel: ChannelLine | undefined,
  { left, doubted, short }: OpenLines,
): string {
  if (channel?.isRetired) return 'a new run: an operator has retired this channel'
  if (!channel?.isRunning) return 'a relay with the key of this channel'
  if (channel.job === job) return channel.isSending ? 'the ledger' : 'a proof'
  if (channel.isHalted) return 'the end of the stop: payments are stopped, see the overview'
  if (channel.isPaused) return 'an operator, who has paused the channel'
  const { problem } = channel
  if (problem !== null && !(isRun && RUN_PROBLEMS.includes(problem))) {
    const { meaning, remedy } = PROBLEM_EXPLANATIONS[problem]
    return `the channel. ${meaning}. ${remedy()}`
  }
  if (channel.job !== null) return `its turn: the channel pays another ${isRun ? 'employer' : 'job or run'}`
  if (short > 0) {
    return `a higher balance: it has too little for ${short} of ${left} transfers. ${PROBLEM_EXPLANATIONS.balance.remedy()}`
  }
  return doubted === left ? 'a repeated check of the ledger, or another transfer' : 'its host'
}
