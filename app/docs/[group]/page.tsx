import type { Metadata } from 'next'
import { notFound } from 'next/navigation'
import { reference } from '#lib/api/reference/reference.ts'
import { OperationView } from '../operation-view.tsx'
import { Prose } from '../prose.tsx'
import { startedService } from '../started-service.ts'

async function findGroup(params: PageProps<'/docs/[group]'>['params']) {
  const { group } = await params
  return reference().find(({ slug }) => slug === group) ?? notFound()
}

export async function generateMetadata({ params }: PageProps<'/docs/[group]'>): Promise<Metadata> {
  const { name } = await findGroup(params)
  return { title: `${name} · API reference` }
}

/** A section of the reference: its operations. */
export default async function GroupPage({ params }: PageProps<'/docs/[group]'>) {
  const { settings } = await startedService()
  const { name, description, operations } = await findGroup(params)
  return (
    <>
      <h1 className="text-2xl font-semibold tracking-tight">{name}</h1>
      <p className="mt-2 max-w-prose text-soft">
        <Prose text={description} />
      </p>
      {operations.map((operation) => (
        <OperationView key={operation.id} operation={operation} baseUrl={`${settings.publicUrl}/api`} />
      ))}
    </>
  )
}
