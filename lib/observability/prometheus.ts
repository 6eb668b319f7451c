/** One value of a family, under its labels; `suffix` is for the parts of a histogram. */
export interface Sample {
  labels: Readonly<Record<string, string>>
  value: number
  suffix?: '_bucket' | '_sum' | '_count'
}

/** What is measured, with all its samples. */
export interface Family {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  samples: readonly Sample[]
}

/** A distribution: how many values were at most each bound, one count more than bounds for all the rest, and the sum. */
export interface Distribution {
  bounds: readonly number[]
  /** not cumulative: those above the bound before and at most this one */
  counts: readonly number[]
  sum: number
}

export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Families in Prometheus's text format 0.0.4. One without samples is left out. */
export function formatFamilies(families: readonly Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(
        ({ labels, value, suffix = '' }) => `${name}${suffix}${formatLabels(labels)} ${value}\n`,
      )
      return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escapeLabel = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

/** The samples of a histogram: buckets are cumulative, the last one is everything. */
export function distributionSamples(labels: Sample['labels'], { bounds, counts, sum }: Distribution): Sample[] {
  let total = 0
  const buckets = [...bounds, Number.POSITIVE_INFINITY].map((bound, index) => {
    total += counts[index] ?? 0
    const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound)
    return { labels: { ...labels, le }, value: total, suffix: '_bucket' as const }
  })
  return [...buckets, { labels, value: sum, suffix: '_sum' }, { labels, value: total, suffix: '_count' }]
}
