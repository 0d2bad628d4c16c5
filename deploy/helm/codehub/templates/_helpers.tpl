{{- define "codehub.name" -}}
{{- if contains "codehub" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-codehub" (.Release.Name | trunc 32 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "codehub.labels" -}}
app.kubernetes.io/name: codehub
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "codehub.metadata" -}}
labels:
  {{- include "codehub.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "codehub.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "codehub.workspacesNamespace" -}}
{{ .Values.workspaces.namespace | default .Release.Namespace }}
{{- end }}

{{- define "codehub.pdbVersion" -}}
{{ semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version | ternary "policy/v1" "policy/v1beta1" }}
{{- end }}

{{/* What every role is told. The migration runs before anything else of this chart is there, so it stands in each pod. */}}
{{- define "codehub.env" -}}
{{- $own := dict
  "CODEHUB_DATA_DIR" "/data/codehub"
  "CODEHUB_PUBLIC_URL" .Values.publicUrl
  "CODEHUB_WORKSPACE_DOMAIN" .Values.workspaceDomain
  "CODEHUB_TRUSTED_PROXIES" .Values.trustedProxies
  "CODEHUB_ARCHIVE_URL" .Values.archiveUrl
  "CODEHUB_RUNTIME" .Values.workspaces.runtime
  "CODEHUB_PLATFORM_IMAGE" (include "codehub.image" .)
  "CODEHUB_LOG_FORMAT" "json"
  "CODEHUB_HOST" .Values.listenAddress
  "CODEHUB_PORT" "8000"
  "CODEHUB_HEALTH_LISTEN" (printf "%s:9090" .Values.listenAddress)
  "CODEHUB_DRAIN_SECONDS" (toString .Values.drainSeconds)
  "AWS_ENDPOINT_URL" .Values.s3.endpoint
  "AWS_REGION" .Values.s3.region
  "HOME" "/tmp"
  "PROMETHEUS_MULTIPROC_DIR" "/metrics"
}}
{{- if eq .Values.workspaces.runtime "kubernetes" }}
{{- $own = merge $own (dict
  "CODEHUB_KUBERNETES_NAMESPACE" (include "codehub.workspacesNamespace" .)
  "CODEHUB_KUBERNETES_INSTALLATION" .Values.workspaces.installation
  "CODEHUB_KUBERNETES_STORAGE_CLASS" .Values.workspaces.storageClass
  "CODEHUB_KUBERNETES_VOLUME_SIZE" .Values.workspaces.volumeSize
  "CODEHUB_KUBERNETES_RUNTIME_CLASS" .Values.workspaces.runtimeClass
) }}
{{- end }}
{{- if .Values.templates }}{{ $_ := set $own "CODEHUB_TEMPLATES_DIR" "/templates" }}{{ end }}
{{- range $name, $value := merge (dict) .Values.settings $own }}
{{- if not (empty $value) }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}
{{- range $name, $from := dict "CODEHUB_DATABASE_URL" .Values.secrets.database "CODEHUB_REDIS_URL" .Values.secrets.redis "CODEHUB_SECRET_KEY" .Values.secrets.secretKey "CODEHUB_ADMIN_TOKEN" .Values.secrets.adminToken }}
{{- if $from.name }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $from.name }}, key: {{ $from.key }}}}
{{- end }}
{{- end }}
{{- end }}

{{/* The store is the coordinator's alone. */}}
{{- define "codehub.storeEnv" -}}
{{- with .Values.secrets.s3 }}{{ if .name }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .accessKeyId }}}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .secretAccessKey }}}}
{{- end }}{{ end }}
{{- end }}

{{- define "codehub.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "codehub.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "codehub.mounts" -}}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
  - {name: metrics, mountPath: /metrics}
  {{- if .Values.templates }}
  - {name: templates, mountPath: /templates, readOnly: true}
  {{- end }}
{{- end }}

{{- define "codehub.volumes" -}}
volumes:
  - {name: data, emptyDir: {}}
  - {name: tmp, emptyDir: {}}
  - {name: metrics, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  {{- if .Values.templates }}
  - {name: templates, configMap: {name: {{ include "codehub.name" . }}-templates}}
  {{- end }}
{{- end }}

{{/* One role: a deployment with its account and its budget. Given: root, role, more (environment), ports. */}}
{{- define "codehub.role" -}}
{{- $role := .role }}{{ $values := index .root.Values .role }}
{{- $name := printf "%s-%s" (include "codehub.name" .root) .role }}
{{- with .root }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  {{- include "codehub.metadata" . | nindent 2 }}
automountServiceAccountToken: false
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  {{- include "codehub.metadata" . | nindent 2 }}
spec:
  replicas: {{ $values.replicas }}
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      {{- include "codehub.labels" . | nindent 6 }}
      app.kubernetes.io/component: {{ $role }}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels:
        {{- include "codehub.labels" . | nindent 8 }}
        app.kubernetes.io/component: {{ $role }}
      annotations:
        checksum/templates: {{ .Values.templates | toJson | sha256sum }}
        {{- with $values.annotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: {{ and (eq $role "coordinator") (eq .Values.workspaces.runtime "kubernetes") }}
      terminationGracePeriodSeconds: {{ add .Values.leaveSeconds .Values.drainSeconds 15 }}
      {{- include "codehub.podSecurity" . | nindent 6 }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{ toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- range .Values.topologyKeys }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "codehub.labels" $.root | nindent 14 }}
              app.kubernetes.io/component: {{ $role }}
        {{- end }}
      containers:
        - name: {{ $role }}
          image: {{ include "codehub.image" . }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          command: [codehub, {{ $role }}]
          env:
            - name: POD_IP
              valueFrom: {fieldRef: {fieldPath: status.podIP}}
            {{- include "codehub.env" . | trim | nindent 12 }}
            {{- $.more | trim | nindent 12 }}
          ports:
            {{- range $port, $number := $.ports }}
            - {name: {{ $port }}, containerPort: {{ $number }}}
            {{- end }}
            - {name: health, containerPort: 9090}
          startupProbe:
            httpGet: {path: /healthz, port: health}
            periodSeconds: 2
            timeoutSeconds: 5
            failureThreshold: 90
          livenessProbe:
            httpGet: {path: /healthz, port: health}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 3
            timeoutSeconds: 5
            failureThreshold: 2
          resources: {{ toYaml $values.resources | nindent 12 }}
          {{- include "codehub.containerSecurity" . | nindent 10 }}
          {{- include "codehub.mounts" . | nindent 10 }}
      {{- include "codehub.volumes" . | nindent 6 }}
{{- if .Values.podDisruptionBudgets }}
---
apiVersion: {{ include "codehub.pdbVersion" . }}
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
  {{- include "codehub.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "codehub.labels" . | nindent 6 }}
      app.kubernetes.io/component: {{ $role }}
{{- end }}
{{- end }}
{{- end }}
