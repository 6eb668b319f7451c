interface ProgressProps {
  /** its accessible label */
  label: string
  settled: number
  failed: number
  total: number
}

export function Progress({ label, settled, failed, total }: ProgressProps) {
  const part = (count: number) => (total === 0 ? 0 : (100 * count) / total)
  const words = `${settled} of ${total} paid${failed > 0 ? `, ${failed} failed` : ''}`
  return (
    <span className="flex max-w-lg min-h-[1.3125rem] items-center gap-3">
      <svg
        role="img"
        aria-label={`${label}: ${words}`}
        viewBox="0 0 100 6"
        preserveAspectRatio="none"
        className="h-1.5 w-full min-w-12 flex-1 rounded-full bg-line"
      >
        <rect width={part(settled)} height="6" fill="var(--good-fill)" />
        <rect x={part(settled)} width={part(failed)} height="6" fill="var(--bad-fill)" />
      </svg>
      <span aria-hidden="true" className="min-w-8 shrink-0 text-xs text-soft">
        {settled}/{total}
        {failed > 0 && <span className="text-bad max-xl:block xl:ml-1.5">{failed} failed</span>}
      </span>
    </span>
  )
}
