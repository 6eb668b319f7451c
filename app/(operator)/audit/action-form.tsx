import { AUDIT_ACTION_NAMES } from '#lib/operator/audit.ts'

/** Chooses one sort of entry, with or without JavaScript. */
export function ActionForm({ chosen }: { chosen: string | undefined }) {
  return (
    <form action="/audit" method="get" className="mb-4 flex gap-2">
      <label htmlFor="action" className="sr-only">
        Action
      </label>
      <select
        id="action"
        name="action"
        defaultValue={chosen ?? ''}
        className="min-w-0 rounded-md border border-edge bg-surface px-3 py-1.5"
      >
        <option value="">All actions</option>
        {AUDIT_ACTION_NAMES.map((action) => (
          <option key={action} value={action}>
            {action}
          </option>
        ))}
      </select>
      <button
        type="submit"
        className="rounded-md border border-edge bg-surface px-3 py-1.5 hover:border-accent hover:text-accent"
      >
        Show
      </button>
    </form>
  )
}
