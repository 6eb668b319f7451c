/** How much of a limit is used. The colour changes when it is nearly full, and so does the text. */
export function Meter({ label, part, whole }: { label: string; part: bigint; whole: bigint }) {
  const percent = whole === 0n ? 100 : Number((part * 1000n) / whole) / 10
  return (
    <svg
      role="img"
      aria-label={`${label}: ${percent} % used`}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      className="my-2 block h-1.5 w-full rounded-full bg-line"
    >
      <rect
        width={part > 0n ? Math.min(100, Math.max(0.75, percent)) : 0}
        height="6"
        fill={percent >= 80 ? 'var(--busy-fill)' : 'var(--accent)'}
      />
    </svg>
  )
}
