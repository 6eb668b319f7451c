import type { Action } from '#lib/server/operator-actions.ts'

interface ActionFormProps {
  action: Action
  /** the id of the record, or the address of the channel */
  subject: string
  /** the page to return to */
  back: string
  label: string
  /** what the action is about, if the page has several forms with the label */
  about?: string
  /** the label of the note for the reason; absent if the action needs none */
  why?: string
  /** further fields of the action */
  fields?: Record<string, string>
}

export const BUTTON =
  'inline-block min-h-6 rounded-md border border-edge bg-surface px-2 py-0.5 text-xs hover:border-accent hover:text-accent'

/** The form of an operator's action on a record. If the action needs a reason, the form is collapsed at first. */
export function ActionForm({ action, subject, back, label, about, why, fields = {} }: ActionFormProps) {
  const form = (
    <form method="post" action="/act" className="mt-1 flex flex-wrap items-center gap-2 print:hidden">
      <input type="hidden" name="action" value={action} />
      <input type="hidden" name="subject" value={subject} />
      <input type="hidden" name="back" value={back} />
      {Object.entries(fields).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      {why && (
        <input
          name="note"
          required
          maxLength={200}
          aria-label={`${why} (${about ?? label})`}
          placeholder={why}
          autoComplete="off"
          className="h-8 min-w-0 flex-1 basis-40 rounded-md border border-edge bg-surface px-2 text-ink placeholder:text-faint"
        />
      )}
      <button type="submit" className={BUTTON}>
        {label}
      </button>
    </form>
  )
  if (!why) return form
  return (
    <details className="mt-1 open:basis-full print:hidden">
      <summary className="w-fit leading-6 text-soft">{label} …</summary>
      {form}
    </details>
  )
}
