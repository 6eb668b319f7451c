import type { Metadata } from 'next'
import Link from 'next/link'
import NotFound from '../not-found.tsx'
import { Frame } from './frame.tsx'
import { readOperator } from './require-operator.ts'
import { Empty } from './table.tsx'

export const metadata: Metadata = { title: 'Not found' }

/** The page for a record that does not exist, inside the dashboard's frame. */
export default async function RecordNotFound() {
  const running = await readOperator()
  if (!running) return <NotFound />
  return (
    <Frame title="There is nothing here" network={running.settings.network.name}>
      <Empty>
        <strong>404</strong>
        <p>The address may be mistyped, or the record has been removed.</p>
        <p>
          <Link href="/overview" prefetch={false}>
            Overview
          </Link>
        </p>
      </Empty>
    </Frame>
  )
}
