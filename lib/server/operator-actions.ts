import { and, eq } from 'drizzle-orm'
import { z } from 'zod'
import { transfers } from '#drizzle/schema/transfers.ts'
import { ACKNOWLEDGEABLE, type AcknowledgeableCondition, acknowledge } from '#lib/dashboard/acknowledgements.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { resendInvite } from '#lib/directory/contractors/invites.ts'
import { isId } from '#lib/directory/ids.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { changeChannel } from '#lib/relay/channel-state.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { plainText } from '#lib/text/plain-text.ts'
import type { Tracker } from '#lib/transfers/track.ts'
import { directoryContext, type Service } from './services.ts'

const ACTIONS = [
  'acknowledge',
  'pause-channel',
  'resume-channel',
  'retire-channel',
  'resume-payments',
  'look-up-transfer',
  'resend-invite',
] as const
export type Action = (typeof ACTIONS)[number]

const CONDITIONS = Object.keys(ACKNOWLEDGEABLE) as [AcknowledgeableCondition]

export const ACTION_FORM = z.object({
  action: z.enum(ACTIONS, `must be one of ${ACTIONS.join(', ')}`),
  /** the id of the record, or the address of the channel */
  subject: z.string('required').min(1, 'required').max(100, 'too long'),
  note: z.union([z.literal(''), plainText(200)]).default(''),
  back: z.string().default(''),
  /** of `acknowledge`: the condition, and the last event that the page showed */
  condition: z.enum(CONDITIONS, `must be one of ${CONDITIONS.join(', ')}`).optional(),
  seen: z.iso.datetime('must be a time').optional(),
})

type ActionInput = z.output<typeof ACTION_FORM>

interface ActionContext {
  db: Database
  now: Date
  actor: Actor
}

/** Carries out an operator's action. Resolves to the reason if nothing was done. */
export async function act(service: Service, operator: string, input: ActionInput): Promise<string | undefined> {
  const { action, subject, note } = input
  const db = await service.database()
  const context: ActionContext = { db, now: service.now(), actor: { kind: 'operator', sub: operator } }
  if (action !== 'look-up-transfer' && note === '') return 'Say why: the note goes to the audit log.'
  const token = service.settings.token ?? ''
  const channel = { token, address: subject, note }
  const change = async (to: 'paused' | 'resumed' | 'retired', already: string) =>
    (await changeChannel(context, { ...channel, change: to }))
      ? undefined
      : `There is no such channel, or it is ${already} already.`
  switch (action) {
    case 'look-up-transfer': {
      const { tracker } = service
      const isOpen = await lookUpForOperator({ ...context, tracker }, subject)
      return isOpen ? undefined : 'The transfer is not open any more.'
    }
    case 'acknowledge':
      return await acknowledgeItem(context, input)
    case 'resend-invite':
      return await resend(service, { id: subject, actor: context.actor, note })
    case 'resume-payments':
      return await resume({ ...context, token }, note)
    case 'pause-channel':
      return await change('paused', 'paused')
    case 'resume-channel':
      return await change('resumed', 'running')
    case 'retire-channel':
      return await change('retired', 'retired')
  }
}

async function resume(context: ActionContext & { token: string }, note: string): Promise<string | undefined> {
  const resumed = await resumePayments(context, { note })
  if (resumed === 'resumed') return undefined
  if (resumed === 'not-stopped') return 'Payments are not stopped.'
  if ('undecided' in resumed)
    return `It is too early: transfer ${resumed.undecided} is not decided yet. It ends once the RPC responds.`
  return `It is too early: the relays are still reconciling channel ${resumed.waitsFor}, and payments go on by themselves.`
}

async function acknowledgeItem(
  context: ActionContext,
  { subject, note, condition, seen }: ActionInput,
): Promise<string | undefined> {
  const isDone = condition && seen && (await acknowledge(context, { condition, subject, note, seen: new Date(seen) }))
  return isDone ? undefined : 'There is no such record.'
}

async function resend(service: Service, input: Parameters<typeof resendInvite>[1]): Promise<string | undefined> {
  try {
    const isSent = await resendInvite(await directoryContext(service), input)
    return isSent ? undefined : 'No mail can be sent: SMTP_URL is not set, or the contractor has no email.'
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'unavailable') return `It did not work: ${error.message}.`
    throw error
  }
}

/** How long an operator waits for the lookup (ms). */
const WAIT_MS = 5_000

/**
 * Looks up an open transfer now, even if it was looked up in this ledger. The request is recorded in the audit log, and
 * the transfer is settled as usual. Resolves to false if the transfer is not open.
 */
export async function lookUpForOperator(
  { db, now, actor, tracker }: { db: Database; now: Date; actor: Actor; tracker: Tracker },
  id: string,
): Promise<boolean> {
  if (!isId(id)) return false
  const isOpen = await transact(db, async (tx) => {
    const [open] = await tx
      .select({ organisation: transfers.organisation })
      .from(transfers)
      .where(and(eq(transfers.id, id), eq(transfers.status, 'open')))
    if (!open) return false
    const organisation = open.organisation ?? undefined
    await recordAudit(tx, now, { organisation, actor, action: 'transfer.looked-up', subject: id })
    return true
  })
  if (isOpen) await tracker.track([id], { waitMs: WAIT_MS, lookUp: 'requested' })
  return isOpen
}
