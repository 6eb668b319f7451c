/** The service's logo: a payslip with unreadable lines. The name is next to it. */
export function BrandMark({ size = 20 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" className="shrink-0 text-accent">
      <rect x="1" y="1" width="18" height="18" rx="5" fill="currentColor" />
      <g fill="var(--on-accent)">
        <rect x="5" y="5.25" width="10" height="2.2" rx="1.1" opacity="0.55" />
        <rect x="5" y="8.9" width="4.2" height="2.2" rx="1.1" />
        <rect x="10.4" y="8.9" width="4.6" height="2.2" rx="1.1" opacity="0.55" />
        <rect x="5" y="12.55" width="7" height="2.2" rx="1.1" opacity="0.55" />
      </g>
    </svg>
  )
}
